#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <mutex>
#include <utility>
#include <vector>

#include "fovea/options.h"

namespace fovea {

/// Host memory that all threads which decode for an engine share. Threads get theirs in order of
/// arrival: a large share is not overtaken by small ones. What images were decoded into stays for
/// the next ones, inside the budget, as long as some of 32 shares have a use for it. Thread-safe.
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

    /// Memory of an earlier share that this one covers; empty if there is none.
    [[nodiscard]] std::vector<std::uint8_t> take_memory();
    /// Leaves memory for later shares.
    void leave(std::vector<std::uint8_t> memory) noexcept;

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
  /// Releases the memory that was left. @return its bytes.
  std::size_t trim() noexcept;

 private:
  /// Memory that waits for its next use.
  struct Spare {
    std::vector<std::uint8_t> memory;
    std::uint64_t since = 0;  // next_ticket_ when it came
  };

  void give_back(std::size_t bytes) noexcept;
  /// Takes a spare out of the list.
  [[nodiscard]] std::vector<std::uint8_t> remove(std::size_t spare) noexcept;

  std::size_t total_bytes_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::size_t used_bytes_ = 0;
  std::uint64_t next_ticket_ = 0;
  std::deque<std::uint64_t> waiting_;  // tickets in order of arrival
  std::vector<Spare> spares_;          // from the one that came first
  std::size_t spare_bytes_ = 0;        // with used_bytes_ at most total_bytes_
};

/// The budget of an engine: limits.max_decode_bytes, or its default for `num_threads`, but room for
/// one item of max_item_bytes in any case.
[[nodiscard]] std::size_t decode_budget_bytes(const MediaLimits& limits, int num_threads);

}  // namespace fovea
