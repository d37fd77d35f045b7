// The engine: rows of a call that go to memory of the caller, and rows that came with it.
#include <utility>

#include "cache/merge_copies.h"
#include "core/boundary.h"
#include "core/check.h"
#include "engine/engine_impl.h"
#include "engine/prepare/check_item.h"
#include "engine/video_pruning.h"
#include "rows/output.h"

namespace fovea {

namespace {

/// Whether rows that came with a call go from GPU to GPU.
bool stays_on_gpus(const MediaItem& media, const RowBlock* to) {
  return media.source == MediaItem::Source::kRowBlock && media.block.device != RowBlock::kHost &&
         to != nullptr && to->device != RowBlock::kHost;
}

}  // namespace

std::vector<Embedding> Engine::Impl::encode_to(const Destinations& to, ItemView media,
                                               const EncodeOptions& how) {
  check_destinations(to, how.copies, media, report.width, *backends.front().device);
  return encode(media, how, to);
}

void Engine::Impl::fail(const Call& call, std::size_t item, const Error& error) {
  Embedding failed;
  failed.name = call.media[item].name;
  failed.modality = call.media[item].modality;
  failed.times = call.results[item].times;
  failed.error = error;
  call.results[item] = std::move(failed);
  if (call.how.on_error == OnError::kFail) throw Error(error);
}

std::int64_t Engine::Impl::final_rows(const ItemPlan& plan) const {
  const bool is_pruned = options.video_pruning_rate > 0 && plan.modality == Modality::kVideo;
  return is_pruned ? num_retained(plan.spec.out_rows, plan.grid[0], options.video_pruning_rate)
                   : plan.spec.out_rows;
}

void Engine::Impl::check_room(Call& call) {
  call.sizes.resize(call.media.size());
  decode_pool.parallel_for(std::ssize(call.media), [&](std::int64_t i, int) {
    const auto item = static_cast<std::size_t>(i);
    call.sizes[item] = fovea::plan_ahead(model(), call.media[item], options.media);
  });
  for (std::size_t item = 0; item < call.media.size(); ++item) {
    const MediaItem& media = call.media[item];
    if (!call.sizes[item] && !is_finished(media)) continue;
    const std::int64_t rows =
        is_finished(media) ? num_finished_rows(media) : final_rows(*call.sizes[item]);
    const std::optional<Error> error = lacks_room(block_of(call.to, item), rows, media.name);
    if (error) fail(call, item, *error);
  }
}

RowSink Engine::Impl::sink_of(const Call& call, std::size_t item) const {
  const bool is_pruned =
      options.video_pruning_rate > 0 && call.media[item].modality == Modality::kVideo;
  const RowBlock* const to = is_pruned ? nullptr : block_of(call.to, item);
  return {&call.results[item], to, call.dtype(item)};
}

void Engine::Impl::hand_on(const Call& call, std::size_t item) {
  const MediaItem& media = call.media[item];
  Embedding& result = call.results[item];
  ++precomputed_items;
  if (media.source == MediaItem::Source::kRows) {
    hand_on_rows(media, call.dtype(item), result);
    return;
  }
  result.grid_thw = media.grid_thw;
  result.retained = media.retained;
  check_memory(media.block, *backends.front().device, media.name);
  if (!stays_on_gpus(media, block_of(call.to, item))) {
    call.handover.fetch(media.block, media.row_width, call.dtype(item), result);
    return;
  }
  result.rows = media.block.rows;
  result.width = media.row_width;
  result.dtype = call.dtype(item);
}

void Engine::Impl::hand_over(const Call& call) {
  if (call.to.blocks.empty()) return;
  for (std::size_t item = 0; item < call.media.size(); ++item) {
    const MediaItem& media = call.media[item];
    const RowBlock& to = call.to.blocks[item];
    Embedding& result = call.results[item];
    if (result.error) continue;
    if (stays_on_gpus(media, &to)) {
      call.handover.copy(media.block, media.row_width, to);
    } else if (!result.data.empty()) {
      const std::optional<Error> error = lacks_room(&to, result.rows, media.name);
      error ? fail(call, item, *error) : call.handover.store(result, to);
    }
  }
  call.handover.finish();
  for (Embedding& result : call.results) result.data = {};
}

void Engine::Impl::copy_rows(const Call& call, const Destinations& copy) {
  RowHandover handover(*backends.front().device, copy.stream, call.to.stream);
  for (std::size_t item = 0; item < call.results.size(); ++item) {
    RowBlock from = call.to.blocks[item];
    from.rows = call.results[item].rows;
    handover.copy(from, report.width, copy.blocks[item]);
  }
  handover.finish();
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
