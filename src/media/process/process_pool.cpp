// Who decodes next, and where.
#include "media/process/process_pool.h"

#include <chrono>
#include <new>
#include <utility>

#include "core/interrupt.h"

namespace fovea::media {

ProcessPool::ProcessPool(int count, Start start) : start_(std::move(start)), free_places_(count) {}

ProcessPool::Lease::Lease(ProcessPool& pool) : pool_(pool) {
  process_ = pool_.take_place();
  try {
    if (!process_ || !process_->is_idle()) process_ = pool_.start_();  // one may end while it waits
  } catch (...) {
    pool_.give_place(nullptr);
    throw;
  }
}

ProcessPool::Lease::~Lease() {
  const bool keep = process_->is_idle() && !process_->is_worn_out();
  pool_.give_place(keep ? std::move(process_) : nullptr);
}

std::unique_ptr<DecoderProcess> ProcessPool::take_place() {
  constexpr auto kBetweenChecks = std::chrono::milliseconds(20);
  std::unique_lock lock(mutex_);
  const auto me = waiting_.emplace(waiting_.end());
  const auto leave = [&] {
    waiting_.erase(me);
    changed_.notify_all();
  };
  while (me != waiting_.begin() || free_places_ == 0) {
    try {
      check_interrupt_of_wait();
    } catch (...) {
      leave();
      throw;
    }
    changed_.wait_for(lock, kBetweenChecks);
  }
  leave();
  --free_places_;
  if (idle_.empty()) return nullptr;
  std::unique_ptr<DecoderProcess> process = std::move(idle_.back());
  idle_.pop_back();
  return process;
}

void ProcessPool::give_place(std::unique_ptr<DecoderProcess> process) noexcept {
  {
    const std::lock_guard lock(mutex_);
    try {
      if (process) idle_.push_back(std::move(process));
    } catch (const std::bad_alloc&) {  // NOLINT: it ends instead of being kept
    }
    ++free_places_;
  }
  changed_.notify_all();
}

}  // namespace fovea::media
