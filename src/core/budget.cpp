// A semaphore with a queue. Only the thread in front of the queue looks at what is free.
#include "core/budget.h"

#include <algorithm>

#include "core/interrupt.h"

namespace fovea {

bool Budget::Ticket::try_grow(std::size_t more) noexcept {
  if (budget_ == nullptr) return more == 0;
  const std::lock_guard lock(budget_->mutex_);
  const std::size_t free_bytes = budget_->capacity_ - budget_->used_;
  if (more > free_bytes || !budget_->waiting_.empty()) return false;
  budget_->used_ += more;
  bytes_ += more;
  return true;
}

void Budget::Ticket::shrink(std::size_t less) noexcept {
  if (budget_ == nullptr) return;
  {
    const std::lock_guard lock(budget_->mutex_);
    budget_->used_ -= less;
    bytes_ -= less;
    if (budget_->waiting_.empty()) return;
  }
  budget_->changed_.notify_all();
}

Budget::Ticket Budget::take(std::size_t bytes) {
  const std::size_t wanted = std::min(bytes, capacity_);
  Ticket ticket(*this);
  {
    std::unique_lock lock(mutex_);
    waiting_.push_back(&wanted);
    try {
      wait_under_interrupt(changed_, lock, [&] {
        return waiting_.front() == &wanted && wanted <= capacity_ - used_;
      });
      used_ += wanted;
      ticket.bytes_ = wanted;
    } catch (...) {
      waiting_.remove(&wanted);
      lock.unlock();
      changed_.notify_all();  // who was behind may be in front now
      throw;
    }
    waiting_.pop_front();
  }
  changed_.notify_all();  // the next one may fit, too
  return ticket;
}

std::optional<Budget::Ticket> Budget::try_take(std::size_t bytes) noexcept {
  Ticket ticket(*this);
  if (!ticket.try_grow(bytes)) return std::nullopt;
  return ticket;
}

std::size_t Budget::used() const {
  const std::lock_guard lock(mutex_);
  return used_;
}

std::size_t Budget::num_waiting() const {
  const std::lock_guard lock(mutex_);
  return waiting_.size();
}

}  // namespace fovea
