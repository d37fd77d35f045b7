#pragma once

#include <chrono>
#include <cstddef>
#include <thread>
#include <vector>

#include "fovea/error.h"
#include "ranks/transport/message.h"
#include "ranks/transport/socket.h"

namespace fovea::ranks {

/// How the ranks of a group talk to each other; the same on all of them.
struct GroupOptions {
  int size = 1;
  std::chrono::milliseconds time_limit{0};
  bool shares_memory = true;  ///< false: pieces travel with the messages
};

/// The one place that all ranks are connected to, a thread of rank 0: knows who has come to a
/// gather, who has failed and who is gone, and tells all of them the same. The first failure ends
/// the group.
class Hub {
 public:
  /// Tells all ranks that the group is complete.
  /// @param sockets of the ranks, in their order.
  /// @throws Error(kOutOfMemory), Error(kIo).
  Hub(std::vector<FileDescriptor> sockets, const GroupOptions& options);
  /// Returns when rank 0 has left or the group has failed, and the ranks have heard all of it.
  ~Hub() = default;
  Hub(const Hub&) = delete;
  Hub& operator=(const Hub&) = delete;

 private:
  struct Peer {
    FileDescriptor socket;
    bool has_come = false;  ///< to the present gather
    bool has_left = false;
  };

  void run(FileDescriptor memory) noexcept;
  void welcome(const FileDescriptor& memory);
  /// Waits for messages. @return the ranks that have something to say.
  [[nodiscard]] std::vector<int> wait();
  void serve(int rank);
  void serve_gather(int rank, const Message& message);
  void complete_gather();
  /// Fails if somebody has left or is late whom a gather waits for.
  void check_gather();
  /// Sends to a rank. Fails if that is gone, or takes too long.
  void send(int rank, std::span<const std::byte> bytes, int descriptor = -1);
  /// Ends the group with what `transfer` says about a rank, unless it is kDone.
  /// @return whether it is.
  bool succeeded(int rank, Transfer transfer);
  void fail(const Error& error) noexcept;
  void hang_up() noexcept;
  [[nodiscard]] Clock::time_point deadline() const { return Clock::now() + options_.time_limit; }

  GroupOptions options_;
  std::vector<Peer> peers_;
  Message gather_;                                     // as the first rank that came to it says
  int first_to_come_ = -1;                             // -1: nobody has come yet
  Clock::time_point late_ = Clock::time_point::max();  // for the others
  std::vector<std::byte> pieces_;  // of all ranks, where they travel with the messages
  bool is_over_ = false;
  std::jthread thread_;  // last: it uses the rest
};

}  // namespace fovea::ranks
