#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <span>
#include <thread>
#include <utility>
#include <vector>

#include "batcher/request_queue.h"
#include "core/interrupt.h"

namespace fovea::batching {

/// The threads of a batcher. Six lanes take batches and encode them: two take small requests, so
/// that one batch is decoded while another is on the device, four take large ones, one at a time.
/// Of these two work, and where that takes long, a long video for example, another begins after
/// each second, so that not all wait for its end.
/// Who is next on the device, after each sub-batch, is up to the engine. The attendant ends
/// requests that were cancelled or missed their deadline. Every request has one end, whoever comes
/// first; its callback runs without a lock.
class Scheduler {
 public:
  /// Engine::encode.
  using Encode =
      std::function<std::vector<Embedding>(std::span<const PlannedItem>, const EncodeOptions&)>;

  /// @param options with all bounds of a batch. @throws std::system_error, std::bad_alloc.
  Scheduler(Encode encode, const BatcherOptions& options);
  ~Scheduler() { stop(); }
  Scheduler(const Scheduler&) = delete;
  Scheduler& operator=(const Scheduler&) = delete;

  /// Whether a request of this load would be accepted now.
  /// @throws Error(kUnavailable) or Error(kInvalidArgument) if not, as Batcher::submit.
  void check_room(const Load& load) const;
  /// As Batcher::submit. @param request with items, how, done and load.
  Ticket submit(const RequestPtr& request);
  /// As Batcher.
  bool cancel(Ticket ticket) noexcept;
  void drain();
  void stop() noexcept;
  [[nodiscard]] BatcherStats stats() const noexcept;
  void count_refused() noexcept { count(&BatcherStats::refused); }

 private:
  using Batch = std::span<const RequestPtr>;

  void count(std::int64_t BatcherStats::*counter) noexcept;
  void check_room_locked(const Load& load) const;
  [[nodiscard]] RequestQueue& queue_of(const Request& request) noexcept;

  /// A lane. @param batch with room for any, so that no memory is needed to take one.
  void work(RequestQueue& queue, std::vector<RequestPtr> batch) noexcept;
  /// When the next batch of a queue may begin, as far as that is up to those that run.
  [[nodiscard]] Clock::time_point next_turn(const RequestQueue& queue) const noexcept;
  /// Waits for a batch, which replaces `batch`; false: the lane is to end.
  [[nodiscard]] bool wait_for_batch(RequestQueue& queue, std::vector<RequestPtr>& batch);
  void run(Batch batch) noexcept;
  /// Encodes requests with one call of the engine and ends them, also if it fails.
  /// @param items of all of them. @return false, with several requests, if the call has failed:
  /// none of them has ended then.
  [[nodiscard]] bool encode(Batch batch, std::span<const PlannedItem> items);
  [[nodiscard]] std::shared_ptr<Call> begin_call(Batch batch);
  [[nodiscard]] EncodeOptions options_of(Batch batch, const Call& call);
  /// Ends the requests with their rows. @param facts of the batch, for every reply.
  void hand_out(Batch batch, std::vector<Embedding> rows, const BatchReply& facts);

  void attend() noexcept;
  /// Waits for a request that is to end, and why; null: the attendant is to end.
  [[nodiscard]] std::pair<RequestPtr, const Error*> wait_for_end();
  /// Ends a request, unless it has ended: makes room for others, then calls its callback.
  void end(const RequestPtr& request, BatchReply reply) noexcept;

  const Encode encode_;
  const BatcherOptions options_;
  const Error cancelled_;  // made ahead: when they are needed there may be no memory
  const Error expired_;
  Interrupt::Pulse pulse_ = 0;  // of all batches

  mutable std::mutex mutex_;                           // guards what follows
  BatcherStats stats_{.last_progress = Clock::now()};  // without last_movement
  std::condition_variable changed_;                    // for the lanes
  std::condition_variable attention_;                  // for the attendant
  std::condition_variable calm_;                       // for who drains
  RequestQueue small_;
  RequestQueue large_;
  std::int64_t running_large_ = 0;  // batches of it that run
  Clock::time_point large_begun_;   // the last of them
  std::map<std::uint64_t, RequestPtr> open_;
  std::uint64_t last_number_ = 0;
  std::uint64_t last_call_ = 0;
  std::int64_t callbacks_ = 0;  // that have not returned
  bool accepts_ = true;
  bool ends_ = false;

  std::mutex joining_;
  std::vector<std::jthread> threads_;
};

}  // namespace fovea::batching
