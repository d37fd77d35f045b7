#pragma once

#include <cstddef>
#include <vector>

#include "fovea/tower/device/arena.h"
#include "fovea/tower/models/encoder_graph_model.h"
#include "graph/input_block.h"
#include "graph/lane.h"

namespace fovea {

/// Memory for runs that follow one another on a lane: one arena for intermediates, and per path one
/// input block and one output buffer, each as large as the largest run so far needed. A smaller run
/// uses a prefix. Not thread-safe.
class RunMemory {
 public:
  /// Allocates nothing. @param lane must outlive this object.
  RunMemory(Lane& lane, std::size_t num_paths);

  /// Bytes that a run needs of each.
  struct Need {
    std::size_t arena = 0;
    std::size_t input = 0;
    std::size_t output = 0;

    [[nodiscard]] std::size_t total() const noexcept { return arena + input + output; }
  };
  [[nodiscard]] bool holds(PathId path, const Need& need) const;
  /// Grows to hold `need`; does nothing if it does. Growing waits for all work and moves memory.
  /// @throws Error(kOutOfMemory): what could not grow is empty, and may be reserved again.
  void reserve(PathId path, const Need& need);
  /// Gives all memory back; waits for all work.
  void clear();

  /// Where the runs of a path read and write.
  struct Addresses {
    std::byte* input = nullptr;
    std::byte* output = nullptr;
    std::byte* arena = nullptr;

    friend bool operator==(const Addresses&, const Addresses&) noexcept = default;
  };
  [[nodiscard]] Addresses addresses(PathId path) const;
  [[nodiscard]] InputFeed& feed(PathId path) { return paths_[index(path)].feed; }
  /// The scratch memory, free for what follows the last run on the compute queue.
  [[nodiscard]] Arena arena() const noexcept { return {arena_.data(), arena_.bytes()}; }

  [[nodiscard]] std::size_t arena_bytes() const noexcept { return arena_.bytes(); }
  [[nodiscard]] std::size_t input_bytes() const noexcept;
  [[nodiscard]] std::size_t output_bytes() const noexcept;
  /// The sum of all three.
  [[nodiscard]] std::size_t device_bytes() const noexcept;
  /// Pinned host memory.
  [[nodiscard]] std::size_t host_bytes() const noexcept;
  /// As InputFeed::fill_with_nan, for everything here.
  void fill_with_nan();

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

}  // namespace fovea
