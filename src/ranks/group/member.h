#pragma once

#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "fovea/communicator.h"
#include "ranks/group/hub.h"
#include "ranks/transport/message.h"
#include "ranks/transport/shared_memory.h"

namespace fovea::ranks {

/// A rank's connection to the hub: sends what the caller asks for, while a thread receives the
/// messages of the hub. The destructor leaves the group.
class Member final : public Communicator {
 public:
  /// Returns when the hub has sent kWelcome: all ranks are connected.
  /// @param socket to the hub. @param hub if this is rank 0, else null.
  /// @throws Error(kUnavailable), Error(kDeadline), the error that the hub sends,
  /// Error(kOutOfMemory).
  Member(int rank, const GroupOptions& options, FileDescriptor socket, std::unique_ptr<Hub> hub);
  ~Member() override;
  Member(const Member&) = delete;
  Member& operator=(const Member&) = delete;

  [[nodiscard]] int rank() const noexcept override { return rank_; }
  [[nodiscard]] int size() const noexcept override { return options_.size; }
  [[nodiscard]] std::chrono::milliseconds time_limit() const noexcept override {
    return options_.time_limit;
  }
  void all_gather_pieces(std::size_t bytes, const GatherPieces& pieces) override;
  [[nodiscard]] std::optional<int> gather_device() const noexcept override { return std::nullopt; }
  void all_gather_on_device(const void* mine, void* all, std::size_t bytes, void* stream) override;
  void raise() noexcept override;
  [[nodiscard]] std::stop_token raised() const override;
  [[nodiscard]] std::stop_token ended() const override { return ended_.get_token(); }
  void abort(const Error& error) override;

 private:
  void join_group();
  void receive_messages() noexcept;
  /// Does what a message of the hub asks for. @return whether there will be others.
  bool handle(const Message& message);
  /// Ends the group on this rank, unless it has ended.
  void fail(const Error& error) noexcept;
  /// Stops ended(), then lets the caller of this rank go on: a caller that sees the failure sees
  /// the stop.
  void signal_end() noexcept;
  [[noreturn]] void throw_failure();
  void check() const;
  /// Waits until all ranks have arrived at the present round of a gather.
  void wait_for_round();
  /// The memory of a rank's piece of the present round.
  [[nodiscard]] std::span<const std::byte> piece_of(int rank, std::size_t bytes) const;
  /// Sends a message and `bytes` with it. The receiving thread finds out what goes wrong.
  void send(const Message& message, std::span<const std::byte> bytes = {}) noexcept;
  /// The time by which the hub must have answered.
  [[nodiscard]] Clock::time_point deadline() const;

  int rank_;
  GroupOptions options_;
  std::unique_ptr<Hub> hub_;
  FileDescriptor socket_;
  SharedMemory memory_;
  std::uint64_t round_ = 0;          // the present one, all gathers since the beginning counted
  std::vector<std::byte> outgoing_;  // a piece, where it goes with the message
  std::vector<std::byte> incoming_;  // those of all ranks then
  std::mutex sending_;               // held while a message is sent, so that none is cut by another

  mutable std::mutex mutex_;  // guards what follows
  std::condition_variable changed_;
  std::uint64_t rounds_done_ = 0;
  std::optional<Error> failure_;
  bool has_ended_ = false;   // and all stops are requested
  std::stop_source raised_;  // of the present gather
  std::stop_source ended_;
  std::jthread receiver_;  // last: it uses the rest
};

}  // namespace fovea::ranks
