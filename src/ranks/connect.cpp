// How the ranks of a group find each other.
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <utility>

#include "core/boundary.h"
#include "core/check.h"
#include "ranks/address.h"
#include "ranks/member.h"

namespace fovea {

namespace ranks {
namespace {

constexpr int kMostRanks = 1024;
constexpr std::chrono::hours kLongest{24 * 365};
constexpr std::chrono::seconds kFirstWords{5};  // for whoever has connected

void check_group(int size, std::chrono::milliseconds time_limit) {
  FOVEA_CHECK(size >= 1 && size <= kMostRanks, kInvalidArgument,
              "the number of ranks must be in [1, ", kMostRanks, "], got ", size);
  FOVEA_CHECK(time_limit.count() > 0 && time_limit <= kLongest, kInvalidArgument,
              "the time limit of ranks must be in (0 ms, a year], got ", time_limit.count(), " ms");
}

/// The sockets of a group while it meets; that of rank 0 stays closed.
class Meeting {
 public:
  explicit Meeting(const RankOptions& options)
      : options_(options), sockets_(static_cast<std::size_t>(options.size)) {}

  /// Waits for all other ranks. What goes wrong is told to those that are there.
  std::vector<Descriptor> meet(const Listener& listener) {
    const Clock::time_point deadline = Clock::now() + options_.time_limit;
    try {
      while (!missing().empty()) wait(listener, deadline);
    } catch (const Error& error) {
      for (const Descriptor& socket : sockets_) {
        if (socket.is_open()) send_failure(socket.get(), error, Clock::now() + kFirstWords);
      }
      throw;
    }
    return std::move(sockets_);
  }

 private:
  [[nodiscard]] std::vector<int> missing() const {
    std::vector<int> ranks;
    for (int rank = 1; rank < options_.size; ++rank) {
      if (!sockets_[static_cast<std::size_t>(rank)].is_open()) ranks.push_back(rank);
    }
    return ranks;
  }

  void wait(const Listener& listener, Clock::time_point deadline) {
    std::vector<pollfd> waiting;
    for (const Descriptor& socket : sockets_) {
      waiting.push_back({.fd = socket.get(), .events = POLLIN, .revents = 0});
    }
    waiting.front().fd = listener.get();
    const int ready = poll(waiting.data(), waiting.size(), poll_timeout(deadline));
    FOVEA_CHECK(ready > 0 || Clock::now() < deadline, kDeadline, name_ranks(missing()),
                " did not come to ", options_.rendezvous, " within ", options_.time_limit.count(),
                " ms");
    for (std::size_t rank = 1; rank < waiting.size(); ++rank) {  // nobody has anything to say yet
      FOVEA_CHECK(waiting[rank].revents == 0, kUnavailable, "rank ", rank, " has ended");
    }
    if (waiting.front().revents != 0) admit(listener.accept());
  }

  void admit(Descriptor socket) {
    Message hello;
    const Clock::time_point deadline = Clock::now() + kFirstWords;
    if (!socket.is_open() || receive_message(socket.get(), hello, deadline) != Transfer::kDone ||
        hello.kind != MessageKind::kHello)
      return;  // no rank
    const auto refuse = [&](const Error& error) {
      send_failure(socket.get(), error, deadline);
      throw Error(error);
    };
    if (hello.size != options_.size) {
      refuse(
          Error(ErrorCode::kInvalidArgument, cat("rank 0 belongs to ", options_.size,
                                                 " ranks, rank ", hello.rank, " to ", hello.size)));
    }
    const bool is_other = hello.rank > 0 && hello.rank < options_.size;
    if (!is_other || sockets_[static_cast<std::size_t>(hello.rank)].is_open()) {
      refuse(Error(ErrorCode::kInvalidArgument,
                   cat("two processes came to ", options_.rendezvous, " as rank ", hello.rank)));
    }
    sockets_[static_cast<std::size_t>(hello.rank)] = std::move(socket);
  }

  const RankOptions& options_;
  std::vector<Descriptor> sockets_;
};

std::unique_ptr<Communicator> connect_first(const RankOptions& options, const Address& address,
                                            const GroupOptions& group) {
  std::vector<Descriptor> sockets(1);
  if (options.size > 1) {
    const Listener listener(address);
    sockets = Meeting(options).meet(listener);
  }
  auto [own, of_hub] = socket_pair();
  sockets.front() = std::move(of_hub);
  auto hub = std::make_unique<Hub>(std::move(sockets), group);
  return std::make_unique<Member>(0, group, std::move(own), std::move(hub));
}

std::unique_ptr<Communicator> connect_other(const RankOptions& options, const Address& address,
                                            const GroupOptions& group) {
  const Clock::time_point deadline = Clock::now() + options.time_limit;
  try {
    Descriptor socket = connect(address, deadline);
    FOVEA_CHECK(socket.is_open(), kDeadline, "rank 0 did not come to ", address.text, " within ",
                options.time_limit.count(), " ms");
    const Message hello{.rank = options.rank, .size = options.size};
    (void)send_all(socket.get(), bytes_of(hello), deadline);
    return std::make_unique<Member>(options.rank, group, std::move(socket), nullptr);
  } catch (const Error&) {
    remove_stale(address);  // of a rank 0 that was killed
    throw;
  }
}

}  // namespace
}  // namespace ranks

std::unique_ptr<Communicator> connect_ranks(const RankOptions& options) try {
  ranks::check_group(options.size, options.time_limit);
  FOVEA_CHECK(options.rank >= 0 && options.rank < options.size, kInvalidArgument,
              "a rank must be in [0, ", options.size, "), got ", options.rank);
  const ranks::Address address =
      options.size > 1 ? ranks::parse_address(options.rendezvous) : ranks::Address();
  const ranks::GroupOptions group{.size = options.size,
                                  .time_limit = options.time_limit,
                                  .shares_memory = options.size == 1 || address.is_file()};
  return options.rank == 0 ? ranks::connect_first(options, address, group)
                           : ranks::connect_other(options, address, group);
} catch (...) {
  rethrow_as_error();
}

std::vector<std::unique_ptr<Communicator>> connect_threads(
    int size, std::chrono::milliseconds time_limit) try {
  ranks::check_group(size, time_limit);
  const ranks::GroupOptions group{.size = size, .time_limit = time_limit};
  std::unique_ptr<ranks::Hub> hub;  // ends when `own` is closed
  std::vector<ranks::Descriptor> own;
  std::vector<ranks::Descriptor> of_hub;
  for (int rank = 0; rank < size; ++rank) {
    auto ends = ranks::socket_pair();
    own.push_back(std::move(ends.first));
    of_hub.push_back(std::move(ends.second));
  }
  hub = std::make_unique<ranks::Hub>(std::move(of_hub), group);
  std::vector<std::unique_ptr<Communicator>> members;
  members.reserve(own.size());
  for (int rank = 0; rank < size; ++rank) {
    members.push_back(std::make_unique<ranks::Member>(
        rank, group, std::move(own[static_cast<std::size_t>(rank)]), std::move(hub)));
  }
  return members;
} catch (...) {
  rethrow_as_error();
}

}  // namespace fovea
