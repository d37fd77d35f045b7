// The same forward as capture uses, at exact sizes. Sizing it costs one pass over counting kernels,
// which is skipped when the last run of the path had the same capacity.
#include "graph/eager_runner.h"

#include <utility>

#include "core/stopwatch.h"

namespace fovea {

EagerRunner::EagerRunner(const EncoderGraphModel& model, Lane& lane)
    : model_(model),
      lane_(lane),
      memory_(lane, model.graph_spec().paths.size()),
      forwards_(model.graph_spec().paths.size()) {}

const SizedForward& EagerRunner::prepare(PathId path, const GraphCapacity& capacity) {
  std::optional<SizedForward>& forward = forwards_[static_cast<std::size_t>(path)];
  if (!forward || forward->capacity() != capacity) {
    forward.emplace(model_, lane_.device(), path, capacity);
  }
  memory_.reserve(path, forward->need());
  return *forward;
}

TensorView EagerRunner::run(PathId path, std::span<const ItemPart> parts, InputScratch& scratch) {
  const Stopwatch sizing;
  const SizedForward& forward = prepare(path, exact_capacity(parts));
  needed_ += forward.need().total();
  scratch.host_ms += sizing.elapsed_ms();
  forward.feed(lane_, memory_, parts, scratch);
  forward.submit(lane_, memory_, false);
  return forward.output(memory_, parts);
}

TensorView EagerRunner::run_in_team(PathId path, const ItemPart& part, TeamTable& table,
                                    InputScratch& scratch) {
  const std::span<const ItemPart> parts(&part, 1);
  const Stopwatch sizing;
  const SizedForward& forward = prepare(path, exact_capacity(parts));
  needed_ += forward.need().total();
  scratch.host_ms += sizing.elapsed_ms();
  forward.feed(lane_, memory_, parts, scratch);
  lane_.synchronize();  // from here on members differ by what it takes to submit
  const Team team = table.join(part.team.rank, memory_.addresses(path).arena);
  forward.submit(lane_, memory_, false, &team);
  return forward.output(memory_, parts);
}

void EagerRunner::rehearse(PathId path, const GraphCapacity& capacity) {
  const SizedForward& forward = prepare(path, capacity);
  lane_.synchronize();
  forward.feed_zeros(lane_, memory_);
  forward.submit(lane_, memory_, true);
  lane_.synchronize();
}

void EagerRunner::give_back_idle_memory() {
  recent_.add(std::exchange(needed_, 0));
  if (recent_.is_far_below(memory_.device_bytes())) clear();
}

void EagerRunner::forget_sizes() noexcept {
  for (std::optional<SizedForward>& forward : forwards_) forward.reset();
}

void EagerRunner::clear() {
  memory_.clear();
  forget_sizes();
}

}  // namespace fovea
