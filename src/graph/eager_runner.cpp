// The same forward as capture uses, at exact sizes. Sizing it costs one pass over counting kernels,
// which is skipped when the last run of the path had the same capacity.
#include "graph/eager_runner.h"

#include "core/stopwatch.h"
#include "graph/forward_cost.h"
#include "ops/context.h"

namespace fovea {

GraphCapacity exact_capacity(PathId path, std::span<const PreparedItem* const> items) {
  GraphCapacity capacity{.items = static_cast<std::int64_t>(items.size())};
  for (const PreparedItem* const item : items) {
    capacity.tokens += item->plan.spec.path_tokens[static_cast<std::size_t>(path)];
    capacity.seqs += item->plan.spec.num_seqs;
  }
  return capacity;
}

EagerRunner::EagerRunner(const EncoderGraphModel& model, Lane& lane) : model_(model), lane_(lane) {
  const std::size_t num_paths = model.graph_spec().paths.size();
  paths_.reserve(num_paths);
  for (std::size_t path = 0; path < num_paths; ++path) paths_.emplace_back(lane);
}

void EagerRunner::prepare(PathId path, const GraphCapacity& capacity) {
  PathMemory& memory = paths_[static_cast<std::size_t>(path)];
  // The arena is shared: another path may have failed to grow it, and left none.
  if (memory.capacity == capacity && memory.arena_bytes <= arena_.bytes()) return;
  memory.capacity = {};  // whatever throws below, nothing half-made is taken for valid
  memory.layout = InputLayout(model_.inputs(path, capacity));
  memory.arena_bytes = measure_forward(model_, lane_.device(), path, capacity).arena_bytes;
  memory.feed.reserve(memory.layout.bytes());
  memory.views = memory.layout.views(memory.feed.block());
  lane_.grow(arena_, memory.arena_bytes);
  const DType dtype = lane_.device().properties().activation_dtype;
  lane_.grow(memory.output,
             static_cast<std::size_t>(capacity.tokens * model_.path_width(path)) * size_of(dtype));
  memory.capacity = capacity;
}

PathOutput EagerRunner::run(PathId path, std::span<const PreparedItem* const> items) {
  const GraphCapacity capacity = exact_capacity(path, items);
  const Stopwatch sizing;
  prepare(path, capacity);
  inputs_.host_ms += sizing.elapsed_ms();
  PathMemory& memory = paths_[static_cast<std::size_t>(path)];

  const InputFill fill{
      .model = model_, .path = path, .capacity = capacity, .items = items, .layout = memory.layout};
  feed_inputs(fill, memory.feed, inputs_, lane_.copiers());

  Arena scratch = arena();
  ExecContext ctx{.stream = lane_.compute(),
                  .kernels = lane_.device().kernels(),
                  .arena = scratch,
                  .side = lane_.side()};
  const TensorView out{memory.output.data(),
                       lane_.device().properties().activation_dtype,
                       {capacity.tokens, model_.path_width(path)}};
  model_.forward(ctx, path, capacity, memory.views, out);
  return {.rows = out};
}

std::size_t EagerRunner::device_bytes() const noexcept {
  std::size_t bytes = arena_.bytes();
  for (const PathMemory& memory : paths_)
    bytes += memory.feed.device_bytes() + memory.output.bytes();
  return bytes;
}

void EagerRunner::forget_sizes() noexcept {
  for (PathMemory& memory : paths_) memory.capacity = {};
}

void EagerRunner::clear() {
  lane_.synchronize();
  arena_ = {};
  for (PathMemory& memory : paths_) memory = PathMemory(lane_);
}

void EagerRunner::poison() {
  lane_.synchronize();
  fill_with_ones(lane_.device(), lane_.compute(), arena_.data(), arena_.bytes());
  for (PathMemory& memory : paths_) {
    memory.feed.poison();
    fill_with_ones(lane_.device(), lane_.compute(), memory.output.data(), memory.output.bytes());
  }
}

}  // namespace fovea
