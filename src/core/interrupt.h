#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <stop_token>
#include <string_view>

#include "fovea/call_bounds.h"

namespace fovea {

/// When the work of one call ends early. A thread works under an Interrupt while an InterruptScope
/// of it lives; ThreadPool::parallel_for carries it to the threads that help. Long work calls
/// check_interrupt() every few milliseconds: loops of a pool do so before every task. So each call
/// is a sign that the work moves, too, and a thread that watches it gives the interrupt a pulse.
class Interrupt {
 public:
  using Clock = std::chrono::steady_clock;
  /// When work moved last, to a few milliseconds, in ticks of the clock.
  using Pulse = std::atomic<Clock::rep>;

  /// @param stop when a stop is requested, checks throw Error(kCancelled).
  /// @param deadline after it, checks throw Error(kDeadline). Clock::time_point::max(): never.
  /// @param subject what has the deadline, for the message. Must outlive this object.
  /// @param outer also ends this work, and watches it; must outlive this object. May be null.
  /// @param pulse kept up to date by moved(); must outlive this object. Null: no thread watches.
  Interrupt(std::stop_token stop, Clock::time_point deadline, std::string_view subject,
            const Interrupt* outer = nullptr, Pulse* pulse = nullptr);

  /// @throws Error(kCancelled) or Error(kDeadline) if this work, or that of an outer interrupt, is
  /// to end.
  void check() const;
  /// Notes in all pulses that the work has moved.
  void moved() const noexcept;

 private:
  std::stop_token stop_;
  Clock::time_point deadline_;
  std::string_view subject_;
  const Interrupt* outer_;
  Pulse* pulse_;
};

/// Puts the current thread under an interrupt for the lifetime of the scope; the interrupt of the
/// time before returns afterwards. Null: the thread cannot be interrupted meanwhile.
class InterruptScope {
 public:
  explicit InterruptScope(const Interrupt* interrupt) noexcept;
  ~InterruptScope();
  InterruptScope(const InterruptScope&) = delete;
  InterruptScope& operator=(const InterruptScope&) = delete;

 private:
  const Interrupt* before_;
};

/// The interrupt that the current thread works under; null if there is none. For those who hand
/// work to another thread.
[[nodiscard]] const Interrupt* current_interrupt() noexcept;

/// Between two steps of work: notes that it moves, and checks the interrupt of the current thread,
/// if it has one. Some 30 ns. @throws as Interrupt::check.
void check_interrupt();

/// Puts the calling thread under the bounds of a call of the library until the call returns. A call
/// that other calls of the library consist of, verify() for example, bounds them too.
class CallScope {
 public:
  /// @param call for messages; must outlive the scope.
  /// @throws as check_interrupt: a call may be over before it begins.
  CallScope(const CallBounds& bounds, std::string_view call)
      : interrupt_(bounds.stop, bounds.deadline, call, current_interrupt()), scope_(&interrupt_) {
    check_interrupt();
  }

 private:
  Interrupt interrupt_;
  InterruptScope scope_;
};

/// The same while the thread waits for others, which is no sign that anything moves.
void check_interrupt_of_wait();

/// Waits for `ready()`, whose change `condition` tells of. Under an interrupt, which notifies no
/// condition, the thread looks at it every 10 ms.
/// @throws as Interrupt::check, with `lock` held, if `ready()` does not hold.
template <class Ready>
void wait_under_interrupt(std::condition_variable& condition, std::unique_lock<std::mutex>& lock,
                          Ready&& ready) {
  constexpr std::chrono::milliseconds kLook{10};
  if (current_interrupt() == nullptr) {
    condition.wait(lock, ready);
  } else {
    while (!condition.wait_for(lock, kLook, ready)) check_interrupt_of_wait();
  }
}

}  // namespace fovea
