// Capture and replay of one graph, and the memory that graphs share.
#include "graph/budget_graph.h"

#include <algorithm>

#include "core/stopwatch.h"
#include "graph/eager_runner.h"
#include "graph/forward_cost.h"
#include "ops/context.h"

namespace fovea {

GraphMemory::GraphMemory(const EncoderGraphModel& model, Lane& lane) : lane_(lane) {
  for (std::size_t path = 0; path < model.graph_spec().paths.size(); ++path) {
    paths_.push_back({.feed = InputFeed(lane.device(), lane.compute(), lane.copy()), .output = {}});
  }
}

bool GraphMemory::holds(PathId path, const Need& need) const {
  const PathMemory& memory = paths_[index(path)];
  return need.arena <= arena_.bytes() && need.input <= memory.feed.capacity() &&
         need.output <= memory.output.bytes();
}

void GraphMemory::reserve(PathId path, const Need& need) {
  lane_.grow(arena_, need.arena);
  paths_[index(path)].feed.reserve(need.input);
  lane_.grow(paths_[index(path)].output, need.output);
}

void GraphMemory::clear() {
  lane_.synchronize();
  arena_ = {};
  for (PathMemory& memory : paths_) {
    memory.feed = InputFeed(lane_.device(), lane_.compute(), lane_.copy());
    memory.output = {};
  }
}

std::size_t GraphMemory::input_bytes() const noexcept {
  std::size_t bytes = 0;
  for (const PathMemory& memory : paths_) bytes += memory.feed.device_bytes();
  return bytes;
}

std::size_t GraphMemory::host_bytes() const noexcept {
  std::size_t bytes = 0;
  for (const PathMemory& memory : paths_) bytes += memory.feed.host_bytes();
  return bytes;
}

std::size_t GraphMemory::output_bytes() const noexcept {
  std::size_t bytes = 0;
  for (const PathMemory& memory : paths_) bytes += memory.output.bytes();
  return bytes;
}

void GraphMemory::poison() {
  lane_.synchronize();
  fill_with_ones(lane_.device(), lane_.compute(), arena_.data(), arena_.bytes());
  for (PathMemory& memory : paths_) {
    memory.feed.poison();
    fill_with_ones(lane_.device(), lane_.compute(), memory.output.data(), memory.output.bytes());
  }
}

BudgetGraph::BudgetGraph(const EncoderGraphModel& model, const Device& device, const GraphKey& key,
                         const GraphCapacity& capacity)
    : model_(model),
      key_(key),
      capacity_(capacity),
      layout_(model.inputs(key.path, capacity)),
      need_{.arena = measure_forward(model, device, key.path, capacity).arena_bytes,
            .input = layout_.bytes()} {
  const DType dtype = device.properties().activation_dtype;
  out_ = {nullptr, dtype, {capacity.tokens, model.path_width(key.path)}};
  need_.output = aligned_bytes(out_.bytes());
}

BudgetGraph::Addresses BudgetGraph::addresses(GraphMemory& memory) const {
  return {.input = memory.feed(key_.path).block(),
          .output = memory.output(key_.path),
          .arena = memory.scratch()};
}

void BudgetGraph::capture(Lane& lane, GraphMemory& memory) {
  FOVEA_CHECK(memory.holds(key_.path, need_), kInternal, "graph of budget ", key_.budget,
              " needs more memory than is reserved");
  const Stopwatch watch;
  std::byte* const input = memory.feed(key_.path).block();
  views_ = layout_.views(input);
  out_.data = memory.output(key_.path);
  const auto forward = [&] {
    Arena arena = memory.arena();
    ExecContext ctx{.stream = lane.compute(),
                    .kernels = lane.device().kernels(),
                    .arena = arena,
                    .side = lane.side(),
                    .is_recorded = true};
    model_.forward(ctx, key_.path, capacity_, views_, out_);
  };
  lane.synchronize();
  lane.compute().fill_zero(input, layout_.bytes());  // nothing is live, every offset is 0
  forward();
  forward();
  lane.synchronize();
  recording_ = lane.compute().capture(forward);
  captured_ = addresses(memory);
  capture_ms_ = watch.elapsed_ms();
}

PathOutput BudgetGraph::replay(Lane& lane, GraphMemory& memory,
                               std::span<const PreparedItem* const> items,
                               InputScratch& scratch) const {
  FOVEA_CHECK(recording_ != nullptr && captured_ == addresses(memory), kInternal,
              "memory of the graph of budget ", key_.budget, " has moved since capture");
  const InputFill fill{
      .model = model_, .path = key_.path, .capacity = capacity_, .items = items, .layout = layout_};
  feed_inputs(fill, memory.feed(key_.path), scratch, lane.copiers());
  lane.compute().replay(*recording_);

  const GraphCapacity exact = exact_capacity(key_.path, items);
  const TensorView rows{out_.data, out_.dtype, {exact.tokens, out_.shape[1]}};
  return {.rows = rows};
}

}  // namespace fovea
