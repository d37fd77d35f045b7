#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "graph/input_block.h"
#include "graph/lane.h"
#include "models/encoder_graph_model.h"

namespace fovea {

/// Memory that all graphs of a lane share: one arena, and per path one input block and one output
/// buffer, each sized by the graph that needs most of it. A smaller graph uses a prefix.
class GraphMemory {
 public:
  /// Both must outlive this object.
  GraphMemory(const EncoderGraphModel& model, Lane& lane);

  /// Bytes that a graph needs of each.
  struct Need {
    std::size_t arena = 0;
    std::size_t input = 0;
    std::size_t output = 0;

    [[nodiscard]] std::size_t total() const noexcept { return arena + input + output; }
  };
  [[nodiscard]] bool holds(PathId path, const Need& need) const;
  /// Grows to hold `need`. Moves memory: no graph captured before may be replayed afterwards.
  void reserve(PathId path, const Need& need);
  /// Gives all memory back; the same holds.
  void clear();

  [[nodiscard]] Arena arena() const noexcept { return {arena_.data(), arena_.bytes()}; }
  [[nodiscard]] InputFeed& feed(PathId path) { return paths_[index(path)].feed; }
  [[nodiscard]] std::byte* output(PathId path) const { return paths_[index(path)].output.data(); }
  [[nodiscard]] std::byte* scratch() const noexcept { return arena_.data(); }

  [[nodiscard]] std::size_t arena_bytes() const noexcept { return arena_.bytes(); }
  [[nodiscard]] std::size_t input_bytes() const noexcept;
  [[nodiscard]] std::size_t host_bytes() const noexcept;
  [[nodiscard]] std::size_t output_bytes() const noexcept;
  /// As InputFeed::poison, for everything here.
  void poison();

 private:
  struct PathMemory {
    InputFeed feed;
    Buffer output;
  };
  [[nodiscard]] static std::size_t index(PathId path) { return static_cast<std::size_t>(path); }

  Lane& lane_;
  Buffer arena_;
  std::vector<PathMemory> paths_;
};

/// What a graph is captured for.
struct GraphKey {
  PathId path = 0;
  std::int64_t budget = 0;

  friend bool operator==(const GraphKey&, const GraphKey&) noexcept = default;
};

/// One captured forward of a path at one capacity. It names memory of GraphMemory by address, so
/// that memory must not move while the graph lives; replay checks that it has not.
class BudgetGraph {
 public:
  /// Lays out inputs and counts what the forward needs; captures nothing yet.
  BudgetGraph(const EncoderGraphModel& model, const Device& device, const GraphKey& key,
              const GraphCapacity& capacity);

  [[nodiscard]] const GraphKey& key() const noexcept { return key_; }
  [[nodiscard]] const GraphCapacity& capacity() const noexcept { return capacity_; }
  [[nodiscard]] const GraphMemory::Need& need() const noexcept { return need_; }
  /// Device bytes of the recording itself.
  [[nodiscard]] std::size_t recording_bytes() const noexcept {
    return recording_ ? recording_->bytes() : 0;
  }

  /// What the last capture took.
  [[nodiscard]] double capture_ms() const noexcept { return capture_ms_; }

  /// Runs the forward twice on zeroed inputs (libraries choose and load their kernels), then
  /// records it. @param memory holds need().
  void capture(Lane& lane, GraphMemory& memory);

  /// Fills the inputs for `items` and submits the recorded forward. The rows stay valid
  /// until the next replay of the same path.
  /// @throws Error(kUnavailable) if an input is too small for the batch: nothing was submitted.
  /// @throws Error(kInternal) if the memory has moved since capture.
  [[nodiscard]] PathOutput replay(Lane& lane, GraphMemory& memory,
                                  std::span<const PreparedItem* const> items,
                                  InputScratch& scratch) const;

 private:
  /// Where the recording reads and writes.
  struct Addresses {
    const std::byte* input = nullptr;
    const std::byte* output = nullptr;
    const std::byte* arena = nullptr;
    friend bool operator==(const Addresses&, const Addresses&) noexcept = default;
  };
  [[nodiscard]] Addresses addresses(GraphMemory& memory) const;

  const EncoderGraphModel& model_;
  GraphKey key_;
  GraphCapacity capacity_;
  InputLayout layout_;
  GraphMemory::Need need_;
  Addresses captured_;
  NamedTensors views_;
  TensorView out_;
  std::unique_ptr<RecordedGraph> recording_;
  double capture_ms_ = 0;
};

}  // namespace fovea
