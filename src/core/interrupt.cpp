// The interrupt of a thread. It belongs to the thread and not to the arguments of every function on
// the way, because decoders, resize and ops have no other use for it.
#include "core/interrupt.h"

#include <utility>

#include "core/check.h"

namespace fovea {

namespace {

thread_local const Interrupt* current = nullptr;  // NOLINT(*-avoid-non-const-global-variables)

}  // namespace

Interrupt::Interrupt(std::stop_token stop, Clock::time_point deadline, std::string_view subject,
                     const Interrupt* outer, Pulse* pulse)
    : stop_(std::move(stop)),
      deadline_(deadline),
      subject_(subject),
      outer_(outer),
      pulse_(pulse) {}

void Interrupt::check() const {
  FOVEA_CHECK(!stop_.stop_requested(), kCancelled, "stopped, as the caller asked");
  FOVEA_CHECK(deadline_ == Clock::time_point::max() || Clock::now() <= deadline_, kDeadline,
              subject_, ": not done before its deadline");
  if (outer_ != nullptr) outer_->check();
}

void Interrupt::moved() const noexcept {
  // Threads that note the same moment would only take the pulse from each other.
  constexpr Clock::duration kStep = std::chrono::milliseconds(1);
  if (pulse_ != nullptr) {
    const Clock::rep now = Clock::now().time_since_epoch().count();
    if (now - pulse_->load(std::memory_order_relaxed) >= kStep.count()) {
      pulse_->store(now, std::memory_order_relaxed);
    }
  }
  if (outer_ != nullptr) outer_->moved();
}

InterruptScope::InterruptScope(const Interrupt* interrupt) noexcept
    : before_(std::exchange(current, interrupt)) {}

InterruptScope::~InterruptScope() { current = before_; }

const Interrupt* current_interrupt() noexcept { return current; }

void check_interrupt() {
  if (current == nullptr) return;
  current->moved();
  current->check();
}

void check_interrupt_of_wait() {
  if (current != nullptr) current->check();
}

}  // namespace fovea
