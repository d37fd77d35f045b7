#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>

// Executables that link support/allocations.cpp have an operator new that counts and can fail.
namespace fovea::test {

/// Forgets the peak so far. Allocations from now on count, whichever thread makes them.
void begin_peak() noexcept;
/// The most bytes at one time since begin_peak, beyond those that were there then.
[[nodiscard]] std::int64_t peak_bytes() noexcept;

/// While it lives, one allocation fails, or that and all after it.
class FailingAllocation {
 public:
  enum class Lasts : std::uint8_t { kOnce, kForever };

  /// @param nth counts from 1, over all threads.
  FailingAllocation(std::int64_t nth, Lasts lasts) noexcept;
  ~FailingAllocation();
  FailingAllocation(const FailingAllocation&) = delete;
  FailingAllocation& operator=(const FailingAllocation&) = delete;

  /// Whether as many allocations were made.
  [[nodiscard]] bool happened() const noexcept;
};

/// Calls `action` with each of its allocations failing in turn, and all after it; whatever it
/// throws is fine.
/// @return how many there are.
[[nodiscard]] inline int fail_each_allocation(const std::function<void()>& action) {
  for (int nth = 1;; ++nth) {
    const FailingAllocation failing(nth, FailingAllocation::Lasts::kForever);
    try {
      action();
    } catch (...) {  // NOLINT: that it is an exception is what is asked for
    }
    if (!failing.happened()) return nth - 1;
  }
}

}  // namespace fovea::test
