// The lanes of a batcher: from waiting requests to calls of the engine to replies.
#include "batcher/scheduler.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "core/blocked_signals.h"
#include "core/boundary.h"
#include "core/check.h"

namespace fovea::batching {

namespace {

using Seconds = std::chrono::duration<double>;

double milliseconds(Clock::duration time) {
  return std::chrono::duration<double, std::milli>(time).count();
}

/// What is being handled, as an Error.
Error current_error() noexcept {
  try {
    rethrow_as_error();
  } catch (const Error& error) {
    return error;
  }
}

/// The counter of requests that end like this.
std::int64_t& counter_of(const std::optional<Error>& error, BatcherStats& stats) noexcept {
  if (!error) return stats.completed;
  switch (error->code()) {
    case ErrorCode::kCancelled: return stats.cancelled;
    case ErrorCode::kDeadline: return stats.expired;
    default: return stats.failed;
  }
}

/// Counts a request that is accepted, or is complete (sign -1).
void count_open(const Load& load, int sign, BatcherStats& stats) noexcept {
  stats.requests += sign;
  stats.items += sign * load.items;
  stats.bytes += sign * load.bytes;
  stats.rows += sign * load.rows;
}

Load sum_of(std::span<const RequestPtr> batch) noexcept {
  Load sum;
  for (const RequestPtr& request : batch) {
    sum.items += request->load.items;
    sum.rows += request->load.rows;
  }
  return sum;
}

/// The items of all requests, one after the other.
std::vector<PlannedItem> take_items(std::span<const RequestPtr> batch) {
  if (batch.size() == 1) return std::move(batch.front()->items);
  std::size_t count = 0;
  for (const RequestPtr& request : batch) count += request->items.size();
  std::vector<PlannedItem> items;
  items.reserve(count);
  for (const RequestPtr& request : batch) std::ranges::move(request->items, back_inserter(items));
  return items;
}

}  // namespace

Scheduler::Scheduler(Encode encode, const BatcherOptions& options)
    : encode_(std::move(encode)),
      options_(options),
      cancelled_(ErrorCode::kCancelled, "the request was cancelled"),
      expired_(ErrorCode::kDeadline, "the request has missed its deadline"),
      small_(options),
      large_(options) {
  // One prepares while the other is on the device; more large ones, where two take long.
  RequestQueue* const lanes[] = {&small_, &small_, &large_, &large_, &large_, &large_};
  threads_.reserve(std::size(lanes) + 1);
  const BlockedSignals none;
  try {
    threads_.emplace_back([this] { attend(); });
    for (RequestQueue* const queue : lanes) {
      std::vector<RequestPtr> batch;
      batch.reserve(queue->most_requests());
      threads_.emplace_back(&Scheduler::work, this, std::ref(*queue), std::move(batch));
    }
  } catch (...) {
    stop();
    throw;
  }
}

RequestQueue& Scheduler::queue_of(const Request& request) noexcept {
  return RequestQueue::is_large(request.load, options_) ? large_ : small_;
}

void Scheduler::check_room(const Load& load) const {
  const std::lock_guard lock(mutex_);
  check_room_locked(load);
}

void Scheduler::check_room_locked(const Load& load) const {
  FOVEA_CHECK(accepts_, kUnavailable, "the batcher has ended and accepts no requests");
  const auto check = [](const char* what, std::int64_t wanted, std::int64_t used,
                        std::int64_t most) {
    FOVEA_CHECK(wanted <= most, kInvalidArgument, "a request of ", wanted, ' ', what,
                ", the batcher holds at most ", most);
    FOVEA_CHECK(wanted <= most - used, kUnavailable, "no room for ", wanted, ' ', what,
                ": the batcher holds ", used, " of at most ", most);
  };
  check("items", load.items, stats_.items, options_.max_items);
  check("bytes", load.bytes, stats_.bytes, options_.max_bytes);
  check("rows", load.rows, stats_.rows, options_.max_rows);
}

Ticket Scheduler::submit(const RequestPtr& request) {
  Ticket ticket;
  {
    const std::lock_guard lock(mutex_);
    check_room_locked(request->load);
    request->number = ++last_number_;
    ticket.number = request->number;
    request->submitted = Clock::now();
    request->is_cancelled = request->how.bounds.stop.stop_requested();
    const auto place = open_.emplace(request->number, request).first;
    try {
      queue_of(*request).push(request);
    } catch (...) {
      open_.erase(place);
      throw;
    }
    count_open(request->load, 1, stats_);
    ++stats_.accepted;
    ++stats_.queued_requests;
  }
  changed_.notify_all();
  const CallBounds& bounds = request->how.bounds;
  if (bounds.stop.stop_requested() || bounds.deadline != Clock::time_point::max()) {
    attention_.notify_one();
  }
  return ticket;
}

bool Scheduler::cancel(Ticket ticket) noexcept {
  {
    const std::lock_guard lock(mutex_);
    const auto request = open_.find(ticket.number);
    if (request == open_.end() || request->second->is_cancelled) return false;
    request->second->is_cancelled = true;
  }
  attention_.notify_one();
  return true;
}

void Scheduler::drain() {
  std::unique_lock lock(mutex_);
  accepts_ = false;
  changed_.notify_all();
  wait_under_interrupt(calm_, lock, [&] { return open_.empty() && callbacks_ == 0; });
}

void Scheduler::stop() noexcept {
  {
    const std::lock_guard lock(mutex_);
    accepts_ = false;
    ends_ = true;
    for (const auto& one : open_) one.second->is_cancelled = true;
  }
  changed_.notify_all();
  attention_.notify_one();
  const std::lock_guard lock(joining_);
  threads_.clear();
}

BatcherStats Scheduler::stats() const noexcept {
  const std::lock_guard lock(mutex_);
  BatcherStats stats = stats_;
  stats.last_movement = std::max(stats.last_progress, Clock::time_point(Clock::duration(pulse_)));
  return stats;
}

void Scheduler::count(std::int64_t BatcherStats::*counter) noexcept {
  const std::lock_guard lock(mutex_);
  ++(stats_.*counter);
}

void Scheduler::work(RequestQueue& queue, std::vector<RequestPtr> batch) noexcept {
  while (wait_for_batch(queue, batch)) {
    run(batch);
    batch.clear();
  }
}

Clock::time_point Scheduler::next_turn(const RequestQueue& queue) const noexcept {
  constexpr std::int64_t kAtATime = 2;
  constexpr std::chrono::seconds kLong{1};
  const bool is_free = &queue == &small_ || running_large_ < kAtATime || ends_;
  return is_free ? Clock::time_point::min() : large_begun_ + kLong;
}

bool Scheduler::wait_for_batch(RequestQueue& queue, std::vector<RequestPtr>& batch) {
  std::unique_lock lock(mutex_);
  for (;;) {
    if (queue.empty()) {
      if (ends_) return false;
      changed_.wait(lock);
      continue;
    }
    const bool is_open = stats_.running_batches > 0 && accepts_ && !queue.has_full_batch();
    const Clock::time_point turn = next_turn(queue);
    const Clock::time_point until =
        is_open ? std::max(turn, queue.oldest() + options_.max_delay) : turn;
    if (Clock::now() >= until) break;
    changed_.wait_until(lock, until);
  }
  queue.take_batch(batch);
  for (const RequestPtr& request : batch) {
    request->state = Request::State::kRunning;
    request->begun = Clock::now();
  }
  stats_.queued_requests -= std::ssize(batch);
  ++stats_.running_batches;
  if (&queue == &large_) {
    ++running_large_;
    large_begun_ = batch.front()->begun;
  }
  return true;
}

void Scheduler::run(Batch batch) noexcept {
  const Clock::time_point begun = batch.front()->begun;
  try {
    const std::vector<PlannedItem> items = take_items(batch);
    if (!encode(batch, items)) {
      count(&BatcherStats::repeated_batches);
      std::span<const PlannedItem> left = items;
      for (const RequestPtr& request : batch) {
        const auto count = static_cast<std::size_t>(request->load.items);
        (void)encode({&request, 1}, left.first(count));
        left = left.subspan(count);
      }
    }
  } catch (...) {
    for (const RequestPtr& request : batch) end(request, {.error = current_error()});
  }
  Clock::duration queued{};
  for (const RequestPtr& request : batch) queued += request->begun - request->submitted;
  {
    const Load sum = sum_of(batch);
    const std::lock_guard lock(mutex_);
    stats_.last_progress = Clock::now();
    --stats_.running_batches;
    if (&queue_of(*batch.front()) == &large_) --running_large_;
    ++stats_.batches;
    stats_.batch_requests += std::ssize(batch);
    stats_.batch_items += sum.items;
    stats_.batch_rows += sum.rows;
    stats_.queue_seconds += Seconds(queued).count();
    stats_.run_seconds += Seconds(stats_.last_progress - begun).count();
  }
  changed_.notify_all();
}

bool Scheduler::encode(Batch batch, std::span<const PlannedItem> items) {
  const std::shared_ptr<Call> call = begin_call(batch);
  if (!call) return true;
  const Clock::time_point begun = batch.front()->begun;
  const Load sum = sum_of(batch);
  BatchReply reply{.batch_items = sum.items, .batch_rows = sum.rows, .batch = call->number};
  const Interrupt watched({}, Clock::time_point::max(), "batch", nullptr, &pulse_);
  const InterruptScope scope(&watched);
  try {
    std::vector<Embedding> rows = encode_(items, options_of(batch, *call));
    reply.run_ms = milliseconds(Clock::now() - begun);
    hand_out(batch, std::move(rows), reply);
  } catch (...) {
    if (batch.size() > 1 && !call->stop.stop_requested()) return false;
    reply.run_ms = milliseconds(Clock::now() - begun);
    reply.error = current_error();
    for (const RequestPtr& request : batch) end(request, reply);
  }
  return true;
}

std::shared_ptr<Call> Scheduler::begin_call(Batch batch) {
  auto call = std::make_shared<Call>();
  const std::lock_guard lock(mutex_);
  call->number = ++last_call_;
  for (const RequestPtr& request : batch) {
    if (request->state == Request::State::kComplete) continue;
    request->call = call;
    ++call->wanted;
  }
  return call->wanted > 0 ? call : nullptr;
}

EncodeOptions Scheduler::options_of(Batch batch, const Call& call) {
  EncodeOptions how = batch.front()->how;
  how.bounds = {.stop = call.stop.get_token()};
  if (batch.size() == 1) {
    how.bounds.deadline = batch.front()->how.bounds.deadline;
  } else {
    how.on_error = OnError::kSkip;
  }
  how.progress = [this](std::int64_t, std::int64_t) {
    const std::lock_guard lock(mutex_);
    stats_.last_progress = Clock::now();
  };
  return how;
}

void Scheduler::hand_out(Batch batch, std::vector<Embedding> rows, const BatchReply& facts) {
  auto next = std::move_iterator(rows.begin());
  for (const RequestPtr& request : batch) {
    const auto behind = next + request->load.items;
    BatchReply reply = facts;
    reply.items.assign(next, behind);
    next = behind;
    const auto failed = std::ranges::find_if(
        reply.items, [](const Embedding& item) { return item.error.has_value(); });
    if (request->how.on_error == OnError::kFail && failed != reply.items.end()) {
      reply.error = Error(*failed->error);
    }
    end(request, std::move(reply));
  }
}

void Scheduler::attend() noexcept {
  for (;;) {
    const auto [request, why] = wait_for_end();
    if (!request) return;
    end(request, {.error = *why});
  }
}

std::pair<RequestPtr, const Error*> Scheduler::wait_for_end() {
  std::unique_lock lock(mutex_);
  for (;;) {
    if (ends_ && open_.empty()) return {};
    const Clock::time_point now = Clock::now();
    Clock::time_point next = Clock::time_point::max();
    for (const auto& one : open_) {
      const Request& request = *one.second;
      if (request.is_cancelled) return {one.second, &cancelled_};
      if (request.how.bounds.deadline <= now) return {one.second, &expired_};
      next = std::min(next, request.how.bounds.deadline);
    }
    if (next == Clock::time_point::max()) {
      attention_.wait(lock);
    } else {
      attention_.wait_until(lock, next);
    }
  }
}

void Scheduler::end(const RequestPtr& request, BatchReply reply) noexcept {
  std::shared_ptr<Call> unwanted;
  {
    const std::lock_guard lock(mutex_);
    if (request->state == Request::State::kComplete) return;
    if (request->state == Request::State::kQueued) {
      queue_of(*request).remove(*request);
      --stats_.queued_requests;
      request->begun = Clock::now();
    } else if (request->call && --request->call->wanted == 0) {
      unwanted = request->call;
    }
    request->state = Request::State::kComplete;
    if (request->is_cancelled) reply.error = cancelled_;  // cancel() has promised it
    open_.erase(request->number);
    count_open(request->load, -1, stats_);
    ++counter_of(reply.error, stats_);
    ++callbacks_;
  }
  if (unwanted) unwanted->stop.request_stop();
  reply.queue_ms = milliseconds(request->begun - request->submitted);
  if (reply.error) reply.items.clear();
  try {
    request->done(std::move(reply));
  } catch (...) {  // NOLINT: it is the caller's, and nobody is left to tell
  }
  request->done = nullptr;
  {
    const std::lock_guard lock(mutex_);
    --callbacks_;
  }
  calm_.notify_all();
}

}  // namespace fovea::batching
