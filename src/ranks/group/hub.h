#pragma once

#include <chrono>
#include <cstddef>
#include <thread>
#include <vector>

#include "fovea/error.h"
#include "ranks/transport/message.h"
#include "ranks/transport/socket.h"

namespace fovea::ranks {

/// The options of a group; the same on all ranks.
struct GroupOptions {
  int size = 1;
  std::chrono::milliseconds time_limit{0};
  bool shares_memory = true;  ///< false: pieces travel with the messages
};

/// The hub is a thread of rank 0 that all ranks are connected to. It counts who has arrived at a
/// gather, notices who fails or ends, and sends the same messages to all ranks. The first failure
/// ends the group.
class Hub {
 public:
  /// Sends all ranks kWelcome: the group is complete.
  /// @param sockets of the ranks, in their order.
  /// @throws Error(kOutOfMemory), Error(kIo).
  Hub(std::vector<FileDescriptor> sockets, const GroupOptions& options);
  /// Returns when rank 0 has left or the group has failed, and the ranks have received everything.
  ~Hub() = default;
  Hub(const Hub&) = delete;
  Hub& operator=(const Hub&) = delete;

 private:
  struct Peer {
    FileDescriptor socket;
    bool has_arrived = false;  ///< at the present gather
    bool has_left = false;
  };

  void run(FileDescriptor memory) noexcept;
  void send_welcome(const FileDescriptor& memory);
  /// Waits for messages. @return the ranks whose sockets can be read.
  [[nodiscard]] std::vector<int> wait();
  /// Receives one message of a rank, and does what it asks for.
  void serve(int rank);
  void serve_gather(int rank, const Message& message);
  void complete_gather();
  /// Fails if a rank that a gather waits for has left or is late.
  void check_gather();
  /// Sends to a rank. Fails if that has ended, or takes too long.
  void send(int rank, std::span<const std::byte> bytes, int descriptor = -1);
  /// Ends the group with what `transfer` says about a rank, unless it is kDone.
  /// @return whether it is.
  bool succeeded(int rank, Transfer transfer);
  void fail(const Error& error) noexcept;
  /// Closes all connections when the ranks have received what was sent to them.
  void close_connections() noexcept;
  [[nodiscard]] Clock::time_point deadline() const { return Clock::now() + options_.time_limit; }

  GroupOptions options_;
  std::vector<Peer> peers_;
  Message gather_;          // of the first rank that arrived at it
  int first_arrival_ = -1;  // -1: no rank has arrived
  Clock::time_point gather_deadline_ = Clock::time_point::max();
  std::vector<std::byte> pieces_;  // of all ranks, where they travel with the messages
  bool has_ended_ = false;
  std::jthread thread_;  // last: it uses the rest
};

}  // namespace fovea::ranks
