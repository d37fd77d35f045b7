// A rank between its caller and the hub.
#include "ranks/group/member.h"

#include <sys/socket.h>

#include <algorithm>
#include <utility>

#include "core/blocked_signals.h"
#include "core/check.h"

namespace fovea::ranks {

namespace {

// A rank waits longer than the hub, which knows better what went wrong.
constexpr std::chrono::seconds kHubHeadStart{2};

}  // namespace

Member::Member(int rank, const GroupOptions& options, FileDescriptor socket,
               std::unique_ptr<Hub> hub)
    : rank_(rank), options_(options), hub_(std::move(hub)), socket_(std::move(socket)) {
  join_group();
  receiver_ = std::jthread([this] { receive_messages(); });
}

Member::~Member() {
  send({.kind = MessageKind::kLeave, .rank = rank_});
  // The receiving thread ends, after what was sent has left.
  (void)shutdown(socket_.get(), SHUT_RDWR);
  if (receiver_.joinable()) receiver_.join();
  hub_.reset();
}

void Member::join_group() {
  Message message;
  FileDescriptor memory;
  const Transfer transfer = receive_message(socket_.get(), message, deadline(), &memory);
  FOVEA_CHECK(transfer != Transfer::kTimedOut, kDeadline, "rank 0 did not say within ",
              options_.time_limit.count(), " ms that the group is complete");
  const bool failed = transfer == Transfer::kDone && message.kind == MessageKind::kFail;
  const std::optional<Error> failure =
      failed ? receive_failure(socket_.get(), message, deadline()) : std::nullopt;
  if (failure) throw Error(*failure);
  FOVEA_CHECK(transfer == Transfer::kDone && message.kind == MessageKind::kWelcome, kUnavailable,
              "rank 0 has ended or left the group");
  if (options_.shares_memory) memory_ = SharedMemory(memory, options_.size);
}

void Member::receive_messages() noexcept {
  const BlockedSignals none;
  try {
    Message message;
    while (receive_message(socket_.get(), message, Clock::time_point::max()) == Transfer::kDone &&
           handle(message)) {
    }
    fail(Error(ErrorCode::kUnavailable, "rank 0 has ended or left the group"));
  } catch (...) {
    signal_end();
  }
  (void)shutdown(socket_.get(), SHUT_RDWR);  // the hub waits for it
}

bool Member::handle(const Message& message) {
  if (message.kind == MessageKind::kFail) {
    const std::optional<Error> failure = receive_failure(socket_.get(), message, deadline());
    if (failure) fail(*failure);
    return false;
  }
  if (message.kind == MessageKind::kRaise) {
    std::stop_source raised(std::nostopstate);
    {
      const std::lock_guard lock(mutex_);
      raised = raised_;
    }
    raised.request_stop();  // calls what others have registered
    return true;
  }
  if (!options_.shares_memory &&
      receive_all(socket_.get(), incoming_, deadline()) != Transfer::kDone)
    return false;
  const std::lock_guard lock(mutex_);
  ++rounds_done_;
  if (raised_.stop_requested()) raised_ = std::stop_source();
  changed_.notify_all();
  return true;
}

void Member::fail(const Error& error) noexcept {
  std::stop_source raised(std::nostopstate);  // takes no memory
  {
    const std::lock_guard lock(mutex_);
    if (failure_) return;
    failure_ = error;
    raised = raised_;
  }
  raised.request_stop();
  signal_end();
}

void Member::signal_end() noexcept {
  ended_.request_stop();  // calls what others have registered
  {
    const std::lock_guard lock(mutex_);
    has_ended_ = true;
  }
  changed_.notify_all();
}

void Member::throw_failure() {
  std::unique_lock lock(mutex_);
  const bool known = changed_.wait_until(lock, deadline(), [&] { return has_ended_; });
  if (failure_) throw Error(*failure_);
  throw Error(known ? ErrorCode::kOutOfMemory : ErrorCode::kDeadline,
              known ? "out of memory" : "rank 0 does not answer");
}

void Member::check() const {
  const std::lock_guard lock(mutex_);
  if (has_ended_ && failure_) throw Error(*failure_);
}

void Member::all_gather_pieces(std::size_t total, const GatherPieces& pieces) {
  check();
  for (std::size_t offset = 0; offset == 0 || offset < total; offset += kPieceBytes) {
    const std::size_t bytes = std::min(kPieceBytes, total - offset);
    const Message message{
        .kind = MessageKind::kGather, .rank = rank_, .bytes = bytes, .total = total};
    if (memory_.is_mapped()) {
      pieces.fill(offset, memory_.piece(round_, rank_).first(bytes));
      send(message);
    } else {
      outgoing_.resize(bytes);
      incoming_.resize(bytes * static_cast<std::size_t>(options_.size));
      pieces.fill(offset, outgoing_);
      send(message, outgoing_);
    }
    wait_for_round();
    for (int rank = 0; rank < options_.size; ++rank) {
      pieces.take(rank, offset, piece_of(rank, bytes));
    }
    ++round_;
  }
}

std::span<const std::byte> Member::piece_of(int rank, std::size_t bytes) const {
  return memory_.is_mapped()
             ? memory_.piece(round_, rank).first(bytes)
             : std::span(incoming_).subspan(static_cast<std::size_t>(rank) * bytes, bytes);
}

void Member::wait_for_round() {
  // Pieces that travel may take as long again as the last rank took to come.
  const Clock::time_point end = memory_.is_mapped() ? deadline() : deadline() + options_.time_limit;
  std::unique_lock lock(mutex_);
  const bool decided =
      changed_.wait_until(lock, end, [&] { return rounds_done_ > round_ || has_ended_; });
  if (rounds_done_ > round_) return;
  lock.unlock();
  if (!decided) {
    fail(Error(ErrorCode::kDeadline,
               cat("rank 0 did not answer a gather within ", options_.time_limit.count(), " ms")));
  }
  throw_failure();
}

void Member::all_gather_on_device(const void* /*mine*/, void* /*all*/, std::size_t /*bytes*/,
                                  void* /*stream*/) {
  throw Error(ErrorCode::kUnsupported,
              "these ranks gather in host memory; add_nccl() adds gathers on their GPUs");
}

void Member::raise() noexcept { send({.kind = MessageKind::kRaise, .rank = rank_}); }

std::stop_token Member::raised() const {
  const std::lock_guard lock(mutex_);
  return raised_.get_token();
}

void Member::abort(const Error& error) {
  {
    const std::lock_guard lock(sending_);
    send_failure(socket_.get(), error, deadline());
  }
  throw_failure();
}

void Member::send(const Message& message, std::span<const std::byte> bytes) noexcept {
  const std::lock_guard lock(sending_);
  if (send_all(socket_.get(), bytes_of(message), deadline()) == Transfer::kDone) {
    (void)send_all(socket_.get(), bytes, deadline());
  }
}

Clock::time_point Member::deadline() const {
  return Clock::now() + options_.time_limit + kHubHeadStart;
}

}  // namespace fovea::ranks
