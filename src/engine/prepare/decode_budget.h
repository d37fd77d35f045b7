#pragma once

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <utility>
#include <vector>

#include "core/budget.h"
#include "fovea/options.h"

namespace fovea {

/// Host memory that all threads which decode for an engine share, in order of arrival (Budget).
/// What images were decoded into stays for the next ones, inside the budget, as long as some of 32
/// shares have a use for it. Thread-safe.
class DecodeBudget {
 public:
  explicit DecodeBudget(std::size_t total_bytes) : budget_(total_bytes) {}
  DecodeBudget(const DecodeBudget&) = delete;
  DecodeBudget& operator=(const DecodeBudget&) = delete;

  /// A part of the budget; gives it back in the destructor. A default share is of nothing.
  class Share {
   public:
    Share() = default;

    /// Memory of an earlier share that this one covers; empty if there is none.
    [[nodiscard]] std::vector<std::uint8_t> take_memory();
    /// Leaves memory for later shares.
    void leave(std::vector<std::uint8_t> memory) noexcept;

   private:
    friend class DecodeBudget;
    Share(DecodeBudget& owner, Budget::Ticket ticket) noexcept
        : owner_(&owner), ticket_(std::move(ticket)) {}
    DecodeBudget* owner_ = nullptr;
    Budget::Ticket ticket_;
  };

  /// Waits as Budget::take, and must not be called by a thread that has a share. @throws as that.
  [[nodiscard]] Share take(std::size_t bytes);

  /// Number of threads that wait.
  [[nodiscard]] std::size_t num_waiting() const { return budget_.num_waiting(); }
  /// Releases the memory that was left. @return its bytes.
  std::size_t trim() noexcept;

 private:
  /// Memory that waits for its next use.
  struct Spare {
    std::vector<std::uint8_t> memory;
    std::uint64_t since = 0;  // shares_ when it came
  };

  /// Takes a spare out of the list.
  [[nodiscard]] std::vector<std::uint8_t> remove(std::size_t spare) noexcept;

  Budget budget_;
  std::mutex mutex_;             // guards what follows
  std::uint64_t shares_ = 0;     // that were taken
  std::vector<Spare> spares_;    // from the one that came first
  std::size_t spare_bytes_ = 0;  // once take() has made room, at most what shares leave free
};

/// The budget of an engine: limits.max_decode_bytes, or its default for `num_threads`, but room for
/// one item of max_item_bytes in any case.
[[nodiscard]] std::size_t decode_budget_bytes(const MediaLimits& limits, int num_threads);

}  // namespace fovea
