#pragma once

#include <array>
#include <cstddef>
#include <span>
#include <vector>

#include "graph/input_block.h"
#include "graph/lane.h"
#include "models/encoder_graph_model.h"

namespace fovea {

/// Sizes of exactly these items.
[[nodiscard]] GraphCapacity exact_capacity(PathId path, std::span<const PreparedItem* const> items);

/// Runs forwards kernel by kernel at the exact size of the batch, in memory that grows on demand
/// and is kept. Not thread-safe.
class EagerRunner {
 public:
  /// Both must outlive the runner.
  EagerRunner(const EncoderGraphModel& model, Lane& lane);

  /// Submits the forward of one path for `items`, whose tokens on the path are not all 0. The rows
  /// stay valid until the next run of the same path.
  [[nodiscard]] PathOutput run(PathId path, std::span<const PreparedItem* const> items);

  /// Scratch memory of the last runs, free for what follows them on the compute queue.
  [[nodiscard]] Arena arena() const noexcept { return {arena_.data(), arena_.bytes()}; }
  /// Milliseconds that the host has spent so far on sizing runs and feeding their inputs.
  [[nodiscard]] double host_ms() const noexcept { return inputs_.host_ms; }
  /// Lets the next run of every path be sized anew, as one of a new size is; keeps the memory.
  void forget_sizes() noexcept;
  /// Bytes allocated on the device.
  [[nodiscard]] std::size_t device_bytes() const noexcept;
  /// Gives all memory back; waits for all work.
  void clear();
  /// As InputFeed::poison, for all memory of the runner.
  void poison();

 private:
  struct PathMemory {
    explicit PathMemory(Lane& lane) : feed(lane.device(), lane.compute(), lane.copy()) {}
    InputFeed feed;
    Buffer output;
    GraphCapacity capacity;  // that `layout`, `views` and `arena_bytes` belong to
    InputLayout layout;
    NamedTensors views;
    std::size_t arena_bytes = 0;
  };
  /// Makes everything fit `capacity`.
  void prepare(PathId path, const GraphCapacity& capacity);

  const EncoderGraphModel& model_;
  Lane& lane_;
  Buffer arena_;
  std::vector<PathMemory> paths_;
  InputScratch inputs_;
};

}  // namespace fovea
