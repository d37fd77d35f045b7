#pragma once

#include <atomic>
#include <cstdint>

#include "batcher/request.h"
#include "core/interrupt.h"

namespace fovea::batching {

/// BatcherStats as counters that several threads change, and anybody reads at any time.
class Counters {
 public:
  /// A request was accepted, or is complete (sign -1).
  void count_open(const Load& load, int sign) noexcept {
    requests_ += sign;
    items_ += sign * load.items;
    bytes_ += sign * load.bytes;
    rows_ += sign * load.rows;
    if (sign > 0) ++accepted_;
  }
  void count_queued(std::int64_t change) noexcept { queued_ += change; }
  void count_refused() noexcept { ++refused_; }
  /// How a request ended. @param error null: with its rows.
  void count_end(const Error* error) noexcept;
  void count_begin() noexcept { ++running_; }
  /// Of the batch that ends.
  void count_batch(const Load& load, std::int64_t num_requests, Clock::duration queued,
                   Clock::duration ran) noexcept;
  void count_repeated() noexcept { ++repeated_; }
  void note_progress() noexcept { progress_ = Clock::now().time_since_epoch().count(); }
  /// When work of a batch moved last, for those who do it.
  [[nodiscard]] Interrupt::Pulse& pulse() noexcept { return pulse_; }

  [[nodiscard]] std::int64_t running() const noexcept { return running_; }
  /// What is accepted and not complete.
  [[nodiscard]] Load open() const noexcept { return {items_, bytes_, rows_}; }
  [[nodiscard]] BatcherStats read() const noexcept;

 private:
  using Count = std::atomic<std::int64_t>;

  Count requests_ = 0, items_ = 0, bytes_ = 0, rows_ = 0, queued_ = 0, running_ = 0;
  Count completed_ = 0, failed_ = 0, cancelled_ = 0, expired_ = 0, accepted_ = 0, refused_ = 0;
  Count batches_ = 0, batch_requests_ = 0, batch_items_ = 0, batch_rows_ = 0, repeated_ = 0;
  Count queue_time_ = 0, run_time_ = 0;  // ticks of the clock
  Count progress_ = Clock::now().time_since_epoch().count();
  Interrupt::Pulse pulse_ = progress_.load();
};

}  // namespace fovea::batching
