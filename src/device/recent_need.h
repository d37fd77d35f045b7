#pragma once

#include <algorithm>
#include <array>
#include <cstddef>

namespace fovea {

/// The memory that the last 32 runs needed. An object that keeps memory from run to run may give
/// back what lies idle. There is no timer: memory of a run that nothing follows is kept.
class RecentNeed {
 public:
  static constexpr std::size_t kRuns = 32;

  void add(std::size_t bytes) noexcept {
    bytes_[next_] = bytes;
    next_ = (next_ + 1) % kRuns;
    count_ = std::min(count_ + 1, kRuns);
  }
  /// The most bytes of the last 32 runs, or of all if there were fewer.
  [[nodiscard]] std::size_t largest() const noexcept { return std::ranges::max(bytes_); }
  /// Whether 32 runs have needed less than half of `held` bytes.
  [[nodiscard]] bool is_far_below(std::size_t held) const noexcept {
    return count_ == kRuns && largest() < held / 2;
  }

 private:
  std::array<std::size_t, kRuns> bytes_{};
  std::size_t next_ = 0;
  std::size_t count_ = 0;
};

}  // namespace fovea
