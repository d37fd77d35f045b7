// What a batcher has done, readable while it does more.
#include "batcher/counters.h"

#include <algorithm>

namespace fovea::batching {

void Counters::count_end(const Error* error) noexcept {
  if (error == nullptr) {
    ++completed_;
  } else if (error->code() == ErrorCode::kCancelled) {
    ++cancelled_;
  } else if (error->code() == ErrorCode::kDeadline) {
    ++expired_;
  } else {
    ++failed_;
  }
}

void Counters::count_batch(const Load& load, std::int64_t num_requests, Clock::duration queued,
                           Clock::duration ran) noexcept {
  --running_;
  ++batches_;
  batch_requests_ += num_requests;
  batch_items_ += load.items;
  batch_rows_ += load.rows;
  queue_time_ += queued.count();
  run_time_ += ran.count();
  note_progress();
}

BatcherStats Counters::read() const noexcept {
  const auto seconds = [](std::int64_t ticks) {
    return std::chrono::duration<double>(Clock::duration(ticks)).count();
  };
  return {
      .requests = requests_,
      .items = items_,
      .bytes = bytes_,
      .rows = rows_,
      .queued_requests = queued_,
      .running_batches = running_,
      .completed = completed_,
      .failed = failed_,
      .cancelled = cancelled_,
      .expired = expired_,
      .accepted = accepted_,
      .refused = refused_,
      .batches = batches_,
      .batch_requests = batch_requests_,
      .batch_items = batch_items_,
      .batch_rows = batch_rows_,
      .repeated_batches = repeated_,
      .queue_seconds = seconds(queue_time_),
      .run_seconds = seconds(run_time_),
      .last_progress = Clock::time_point(Clock::duration(progress_)),
      .last_movement = Clock::time_point(Clock::duration(std::max<Clock::rep>(progress_, pulse_)))};
}

}  // namespace fovea::batching
