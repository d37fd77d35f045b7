#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <mutex>
#include <utility>

#include "fovea/options.h"

namespace fovea {

/// Host memory that all threads which decode for an engine share. Threads get theirs in order of
/// arrival: a large share is not overtaken by small ones. Thread-safe.
class DecodeBudget {
 public:
  explicit DecodeBudget(std::size_t total_bytes) : total_bytes_(total_bytes) {}
  DecodeBudget(const DecodeBudget&) = delete;
  DecodeBudget& operator=(const DecodeBudget&) = delete;

  /// A part of the budget; gives it back in the destructor. A default share is of nothing.
  class Share {
   public:
    Share() = default;
    Share(Share&& other) noexcept
        : budget_(std::exchange(other.budget_, nullptr)), bytes_(other.bytes_) {}
    Share& operator=(Share&& other) noexcept {
      std::swap(budget_, other.budget_);
      std::swap(bytes_, other.bytes_);
      return *this;
    }
    ~Share() {
      if (budget_ != nullptr) budget_->give_back(bytes_);
    }

   private:
    friend class DecodeBudget;
    Share(DecodeBudget& budget, std::size_t bytes) : budget_(&budget), bytes_(bytes) {}
    DecodeBudget* budget_ = nullptr;
    std::size_t bytes_ = 0;
  };

  /// Waits until so many bytes are free; for more than the whole budget, until all of it is free.
  /// A thread must not take a second share: two could wait for each other.
  /// @throws as check_interrupt while it waits.
  [[nodiscard]] Share take(std::size_t bytes);

  /// Number of threads that wait.
  [[nodiscard]] std::size_t num_waiting() const;

 private:
  void give_back(std::size_t bytes) noexcept;

  std::size_t total_bytes_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::size_t used_bytes_ = 0;
  std::uint64_t next_ticket_ = 0;
  std::deque<std::uint64_t> waiting_;  // tickets in order of arrival
};

/// The budget of an engine: limits.max_decode_bytes, or its default for `num_threads`, but room for
/// one item of max_item_bytes in any case.
[[nodiscard]] std::size_t decode_budget_bytes(const MediaLimits& limits, int num_threads);

}  // namespace fovea
