#pragma once

#include <chrono>
#include <string>
#include <string_view>

#include "core/interrupt.h"

namespace fovea {

/// Puts the current thread under the deadline of one item, within the interrupt that it works under
/// already. Lives on the stack of that thread.
class ItemDeadline {
 public:
  /// @param name of the item, for the message. Must outlive this object.
  /// @param limit from now; 0: none.
  ItemDeadline(const std::string& name, std::chrono::milliseconds limit)
      : name_(name.empty() ? std::string_view("item") : std::string_view(name)),
        outer_(current_interrupt()),
        deadline_(deadline_after(limit)),
        interrupt_({}, deadline_, name_, outer_),
        scope_(&interrupt_) {}

  /// Calls `wait`, which waits for other items: that time does not count against this one.
  template <class Wait>
  auto exclude(Wait&& wait) {
    const InterruptScope outside(outer_);
    const auto begin = Interrupt::Clock::now();
    auto result = wait();
    if (deadline_ != Interrupt::Clock::time_point::max()) {
      deadline_ += Interrupt::Clock::now() - begin;
      interrupt_ = Interrupt({}, deadline_, name_, outer_);
    }
    return result;
  }

 private:
  /// The end of the clock for a limit that reaches behind it, too.
  [[nodiscard]] static Interrupt::Clock::time_point deadline_after(
      std::chrono::milliseconds limit) noexcept {
    constexpr auto kNone = Interrupt::Clock::time_point::max();
    const auto now = Interrupt::Clock::now();
    const auto most = std::chrono::floor<std::chrono::milliseconds>(kNone - now);
    return limit.count() > 0 && limit < most ? now + limit : kNone;
  }

  std::string_view name_;
  const Interrupt* outer_;
  Interrupt::Clock::time_point deadline_;
  Interrupt interrupt_;
  InterruptScope scope_;
};

}  // namespace fovea
