#pragma once

#include <cstdint>

namespace fovea {

/// While it lives, the kernel's fair scheduler gives this thread its turns sooner and makes them
/// shorter: a thread that sleeps most of the time and has to go on at once when it wakes asks for
/// that. Its share of the processor does not change. Needs no privilege; does nothing before Linux
/// 6.12, for threads of other scheduling policies, and where the call is forbidden.
/// Source: sched_setattr(2), `sched_runtime` of SCHED_OTHER.
class ShortTurn {
 public:
  ShortTurn() noexcept;
  ShortTurn(const ShortTurn&) = delete;
  ShortTurn& operator=(const ShortTurn&) = delete;
  ~ShortTurn();

 private:
  /// The struct sched_attr of sched_setattr(2). <linux/sched/types.h>, which declares it,
  /// contradicts <sched.h> of glibc before 2.41.
  struct Attributes {
    std::uint32_t size;
    std::uint32_t policy;
    std::uint64_t flags;
    std::int32_t nice;
    std::uint32_t priority;
    std::uint64_t runtime_ns;
    std::uint64_t deadline_ns;
    std::uint64_t period_ns;
  };

  Attributes before_{};
  bool is_set_ = false;
};

}  // namespace fovea
