// Rows of several ranks on their way through memory of this rank.
#include "engine/row_gather.h"

#include <algorithm>
#include <array>
#include <memory>
#include <utility>

#include "core/check.h"
#include "core/interrupt.h"
#include "engine/engine_impl.h"
#include "rows/row_target.h"

namespace fovea {

namespace {

/// The device of an engine with this number; null if it has none.
Device* find_device(std::span<const Backend> backends, int number) {
  const auto is_it = [&](const Backend& backend) {
    const DeviceProperties& properties = backend.device->properties();
    return number == RowBlock::kHost ? properties.host_memory
                                     : properties.name == cat("cuda:", number);
  };
  const auto found = std::ranges::find_if(backends, is_it);
  return found == backends.end() ? nullptr : found->device.get();
}

/// Spreads items, and shares of those that can be shared, over ranks.
RowGather::Shares spread(const GraphSpec& spec, std::span<const ItemSpec> items,
                         std::size_t num_ranks) {
  RowGather::Shares shares{.pieces = cut_items(spec, items, num_ranks), .assignment = {}};
  std::vector<ItemSpec> specs;
  for (const ItemPiece& piece : shares.pieces) {
    specs.push_back(piece.share.spec_of(items[piece.item]));
  }
  shares.assignment = assign_items(spec, specs, num_ranks);
  return shares;
}

std::int64_t unevenness(const RowGather::Shares& shares) {
  const auto [least, most] = std::ranges::minmax(shares.assignment.loads);
  return most - least;
}

}  // namespace

RowGather::RowGather(Engine& engine, const Destinations& to)
    : engine_(engine),
      to_(to),
      mover_(*engine.impl_->backends.front().device),
      memory_(engine.impl_->gathers.take()) {
  mover_.attach({&to_.stream, 1});
}

RowGather::~RowGather() {
  try {
    end_use();
  } catch (...) {  // NOLINT: a device that has failed reads nothing, and its next call says so
  }
}

void RowGather::end_use() {
  if (device_ == nullptr) return;
  memory_->readers(*std::exchange(device_, nullptr)).wait_for(mover_.callers_queue());
}

std::vector<Embedding> RowGather::encode(Engine& engine, ItemView items, const Destinations& to,
                                         const EncodeOptions& options) {
  return engine.impl_->encode(items, options, to.blocks.empty() ? nullptr : &to);
}

void RowGather::check(std::span<const MediaItem> items) const {
  check_destinations(to_, {}, items, engine_.impl_->report.width,
                     *engine_.impl_->backends.front().device);
}

std::vector<PlannedItem> RowGather::plan(Engine& engine, std::span<const MediaItem> items,
                                         const CallBounds& bounds) {
  const CallScope scope(bounds, "encode_on_ranks");
  std::vector<std::shared_ptr<const MediaItem>> media;
  media.reserve(items.size());
  for (const MediaItem& item : items) media.emplace_back(std::shared_ptr<void>(), &item);
  return engine.impl_->plan(std::move(media));
}

RowGather::Shares RowGather::share(Engine& engine, std::span<const PlannedItem> items,
                                   std::span<const RowBlock> to, std::size_t num_ranks) {
  // Whole items go by their patches alone.
  const bool are_cut = engine.impl_->options.packing == PackingPolicy::kUnits;
  const GraphSpec spec = are_cut ? engine.impl_->model().graph_spec() : GraphSpec();
  ItemSpec largest{.input_rows = 1};
  std::vector<ItemSpec> specs(items.size());
  for (std::size_t i = 0; i < items.size(); ++i) {
    const PlannedItem::Plan* const plan = items[i].plan();
    if (plan == nullptr) continue;
    specs[i] = plan->sizes.spec;
    if (specs[i].input_rows > largest.input_rows) largest = specs[i];
    const bool is_pruned = plan->sizes.spec.out_rows != items[i].rows();
    const bool has_room = to.empty() || items[i].rows() <= to[i].rows;
    if (!are_cut || is_pruned || !has_room) specs[i].units = {};
  }
  largest.units = {};
  for (std::size_t i = 0; i < items.size(); ++i) {
    if (!items[i].rows()) specs[i] = largest;
  }
  Shares cut = spread(spec, specs, num_ranks);
  if (cut.pieces.size() == items.size()) return cut;
  for (ItemSpec& item : specs) item.units = {};
  Shares whole = spread(spec, specs, num_ranks);
  return unevenness(whole) <= unevenness(cut) ? whole : cut;
}

bool RowGather::stays_on(int device) const {
  const auto is_there = [&](const RowBlock& block) {
    return block.rows == 0 || block.device == device;
  };
  const bool ordered_there =
      to_.stream.device == CallerStream::kNone || to_.stream.device == device;
  return ordered_there && find_device(engine_.impl_->backends, device) != nullptr &&
         std::ranges::all_of(to_.blocks, is_there);
}

std::byte* RowGather::reserve(int device, std::size_t bytes) {
  Device* const found = find_device(engine_.impl_->backends, device);
  FOVEA_CHECK(found != nullptr, kInternal, "the engine is on another device than ", device);
  stream_ = device == RowBlock::kHost ? CallerStream{}
                                      : CallerStream{.device = device, .handle = to_.stream.handle};
  const bool waits = to_.stream.device == CallerStream::kNone;  // the caller has no stream
  const std::array streams{stream_, CallerStream{}};
  mover_.attach(std::span(streams).first(waits ? 2 : 1));
  std::byte* const memory = memory_->reserve(*found, bytes, /*is_ordered=*/true);
  mover_.callers_queue().wait_for(memory_->readers(*found));
  device_ = found;
  return memory;
}

void RowGather::copy(std::span<const RowBlock> from, std::span<const RowBlock> blocks,
                     std::span<Embedding> results) {
  std::vector<RowMove> moves;
  for (std::size_t i = 0; i < from.size(); ++i) {
    const RowTarget target{&results[i], &blocks[i], blocks[i].dtype};
    if (from[i].rows > 0) moves.emplace_back(from[i], engine_.impl_->report.width, target);
  }
  if (!moves.empty()) mover_.move(std::move(moves), &mover_.callers_queue());
  end_use();
  mover_.finish();
}

}  // namespace fovea
