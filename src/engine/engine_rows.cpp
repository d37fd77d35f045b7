// The engine: rows of a call that go to memory of the caller, and rows that came with it.
#include <utility>

#include "cache/merge_copies.h"
#include "core/boundary.h"
#include "core/check.h"
#include "core/row_dtype.h"
#include "engine/engine_impl.h"
#include "engine/prepare/check_item.h"
#include "engine/pruning/video_pruning.h"

namespace fovea {

void Engine::Impl::check_room(Call& call) {
  Selection all;
  for (Item& item : call.items) all.push_back(&item);
  plan(all);
  for (Item& item : call.items) {
    const bool is_known = item.plan || is_finished(*item.media);
    if (!is_known) continue;
    const std::int64_t rows = item.plan ? final_rows(item.wanted(*item.plan), pruning_of(options))
                                        : num_finished_rows(*item.media);
    if (!call.has_room(item, rows)) ++call.done;
  }
}

RowTarget Engine::Impl::tower_target(const Item& item) const {
  RowTarget target = item.target;
  if (pruning_of(options).applies_to(item.media->modality)) target.block = nullptr;
  return target;
}

std::int64_t Engine::Impl::remaining_rows(const Embedding& whole) const {
  const PruningRule rule = pruning_of(options);
  return rule.applies_to(whole.modality) ? num_retained(whole.rows, whole.grid_thw.value()[0], rule)
                                         : whole.rows;
}

void Engine::Impl::take_finished(Call& call, Item& item) {
  const MediaItem& media = *item.media;
  ++precomputed_items;
  Embedding& result = item.result();
  if (const auto* const known = std::get_if<PrecomputedBlock>(&media.source)) {
    result.grid_thw = known->grid_thw;
    result.retained = known->retained;
    check_memory(known->block, *backends.front().device, media.name);
    call.known.emplace_back(known->block, known->row_width, item.target);
    return;
  }
  const auto& known = std::get<PrecomputedRows>(media.source);
  result.grid_thw = known.grid_thw;
  result.retained = known.retained;
  const RowMatrix& matrix = known.rows;
  const ConstTensorView rows{reinterpret_cast<const std::byte*>(matrix.bytes.view().data()),
                             to_dtype(matrix.dtype),
                             {matrix.num_rows, matrix.row_width}};
  call.known.emplace_back(rows, item.target, RowMove::Source::kHost);
}

Selection Engine::Impl::take_found(Call& call, CachedCall& cached) {
  Selection found;
  for (Item* item : cached.take_found()) {
    const RowTarget target = tower_target(*item);
    Embedding& result = item->result();
    result = item->claim->facts();
    result.name = item->media->name;
    result.cache = item->claim->use();
    ++call.done;
    if (!call.has_room(*item, remaining_rows(result))) continue;
    call.known.emplace_back(std::move(*item->claim), target);
    item->claim.reset();
    found.push_back(item);
  }
  return found;
}

RowDType Engine::Impl::tower_dtype() const {
  return to_row_dtype(backends.front().device->properties().activation_dtype).value();
}

std::optional<Embedding> Engine::Impl::cached_rows(const std::string& key) {
  std::optional<RowCache::Claim> claim = row_cache->find(key);
  if (!claim) return std::nullopt;
  Embedding item = claim->facts();
  const SessionOfCall session(sessions, {});
  std::vector<RowMove> moves;
  moves.emplace_back(std::move(*claim), RowTarget{.result = &item, .dtype = tower_dtype()});
  session->move(std::move(moves));
  session->finish();
  return item;
}

RowLender& Engine::Impl::checked_lender() {
  FOVEA_CHECK(!on_host(), kUnsupported,
              "rows can be lent to other processes from memory of a GPU, and this engine is on ",
              backends.front().device->properties().name);
  FOVEA_CHECK(lender, kInvalidArgument,
              "rows are lent from the memory that the encoder cache has on GPUs, and it has none "
              "(encoder_device_cache_size, --encoder-device-cache-size)");
  return *lender;
}

LentRows Engine::lend_rows(std::span<const std::string> keys) try {
  return impl_->checked_lender().lend(keys);
} catch (...) {
  rethrow_as_error();
}

std::optional<LentRows> Engine::try_lend_rows(std::span<const std::string> keys) try {
  return impl_->checked_lender().try_lend(keys);
} catch (...) {
  rethrow_as_error();
}

void Engine::Impl::share(const Call& call) {
  for (const Item& item : call.items) {
    const Embedding& result = item.result();
    if (!result.error && result.cache == CacheUse::kMiss) shared_rows->keep(item.cache_key());
  }
}

void Engine::Impl::move_seen(GroupSession& session, Call& call) {
  if (call.to.blocks.empty()) return;
  std::vector<RowMove> moves;
  for (Item& item : call.items) {
    Embedding& result = item.result();
    if (result.data.empty() || !call.has_room(item, result.rows)) continue;
    RowBytes data = std::exchange(result.data, {});
    const ConstTensorView rows{data.data(), to_dtype(result.dtype), {result.rows, result.width}};
    moves.emplace_back(rows, item.target, RowMove::Source::kHost);
    moves.back().bytes = std::move(data);
  }
  if (moves.empty()) return;
  session.attach({&call.to.stream, 1});
  session.move(std::move(moves));
  session.finish();
}

void Engine::Impl::copy_rows(const Call& call, const Destinations& copy) {
  std::vector<CallerStream> streams{copy.stream};
  if (call.to.stream.device != CallerStream::kNone) streams.push_back(call.to.stream);
  std::vector<RowMove> moves;
  for (std::size_t i = 0; i < call.items.size(); ++i) {
    RowTarget target = call.items[i].target;
    RowBlock from = *target.block;
    from.rows = target.result->rows;
    target.block = &copy.blocks[i];
    if (from.rows > 0) moves.emplace_back(from, report.width, target);
  }
  const SessionOfCall session(sessions, streams);
  session->move(std::move(moves));
  session->finish();
}

void Engine::merge_rows(const GatheredRows& gathered, const EmbeddingsView& target,
                        const CallerStream& stream) try {
  Device& device = *impl_->backends.front().device;
  FOVEA_CHECK((stream.device == CallerStream::kNone) == impl_->on_host(), kInvalidArgument,
              "merge_rows: an engine on ", device.properties().name, " needs ",
              impl_->on_host() ? "no stream" : "a stream of a GPU");
  const std::vector<RowCopy> copies = merge_copies(gathered, target);
  const std::unique_ptr<Stream> queue = impl_->on_host()
                                            ? device.create_copy_stream()
                                            : device.adopt_stream(stream.device, stream.handle);
  if (level_bytes(target) > 0) queue->fill_zero(target.deepstack, level_bytes(target));
  for (const RowCopy& copy : copies) queue->copy_rows(copy);
} catch (...) {
  rethrow_as_error();
}

}  // namespace fovea
