// The engine: rows of a call that go to memory of the caller, and rows that came with it.
#include <utility>

#include "cache/merge_copies.h"
#include "core/boundary.h"
#include "core/check.h"
#include "core/row_dtype.h"
#include "engine/engine_impl.h"
#include "engine/prepare/check_item.h"
#include "engine/video_pruning.h"

namespace fovea {

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
    (void)has_room(call, item, rows);
  }
}

bool Engine::Impl::has_room(const Call& call, std::size_t item, std::int64_t rows) {
  const std::optional<Error> error =
      destination(call, item).lacks_room(rows, call.media[item].name);
  if (!error) return true;
  if (call.cached != nullptr) call.cached->leave(item);
  fail(call, item, *error);
  return false;
}

RowTarget Engine::Impl::destination(const Call& call, std::size_t item) {
  const RowBlock* const block = call.to.blocks.empty() ? nullptr : &call.to.blocks[item];
  return {&call.results[item], block, call.dtype(item)};
}

RowTarget Engine::Impl::tower_target(const Call& call, std::size_t item) const {
  RowTarget target = destination(call, item);
  const bool is_pruned =
      options.video_pruning_rate > 0 && call.media[item].modality == Modality::kVideo;
  if (is_pruned) target.block = nullptr;
  return target;
}

void Engine::Impl::take_finished(Call& call, std::size_t item) {
  const MediaItem& media = call.media[item];
  ++precomputed_items;
  call.results[item].grid_thw = media.grid_thw;
  call.results[item].retained = media.retained;
  const RowTarget to = destination(call, item);
  if (media.source == MediaItem::Source::kRowBlock) {
    check_memory(media.block, *backends.front().device, media.name);
    call.finished.emplace_back(media.block, media.row_width, to);
    return;
  }
  const ConstTensorView rows{reinterpret_cast<const std::byte*>(media.content().data()),
                             to_dtype(media.row_dtype),
                             {media.num_rows, media.row_width}};
  call.finished.emplace_back(rows, to, RowMove::Source::kHost);
}

void Engine::Impl::move_seen(GroupSession& session, Call& call) {
  if (call.to.blocks.empty()) return;
  std::vector<RowMove> moves;
  for (std::size_t item = 0; item < call.media.size(); ++item) {
    Embedding& result = call.results[item];
    if (result.data.empty() || !has_room(call, item, result.rows)) continue;
    RowBytes data = std::exchange(result.data, {});
    const ConstTensorView rows{data.data(), to_dtype(result.dtype), {result.rows, result.width}};
    moves.emplace_back(rows, destination(call, item), RowMove::Source::kHost);
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
  for (std::size_t item = 0; item < call.results.size(); ++item) {
    RowBlock from = call.to.blocks[item];
    from.rows = call.results[item].rows;
    RowTarget to = destination(call, item);
    to.block = &copy.blocks[item];
    if (from.rows > 0) moves.emplace_back(from, report.width, to);
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
