// Groups of processes and of threads are made here.
#include <utility>
#include <vector>

#include "core/boundary.h"
#include "core/check.h"
#include "ranks/group/member.h"
#include "ranks/group/rendezvous.h"
#include "ranks/transport/address.h"

namespace fovea {

namespace ranks {
namespace {

constexpr int kMostRanks = 1024;
constexpr std::chrono::hours kLongest{24 * 365};

void check_group(int size, std::chrono::milliseconds time_limit) {
  FOVEA_CHECK(size >= 1 && size <= kMostRanks, kInvalidArgument,
              "the number of ranks must be in [1, ", kMostRanks, "], got ", size);
  FOVEA_CHECK(time_limit.count() > 0 && time_limit <= kLongest, kInvalidArgument,
              "the time limit of ranks must be in (0 ms, a year], got ", time_limit.count(), " ms");
}

/// @throws Error(kInvalidArgument) if the group needs a secret and has none.
std::string checked_secret(const RankOptions& options, const Address& address) {
  std::string secret = read_secret(options);
  FOVEA_CHECK(!secret.empty() || is_local(address), kInvalidArgument, "rendezvous ", address.text,
              ": expected a secret (RankOptions::secret_file or FOVEA_RANKS_SECRET), because "
              "processes of other hosts may come there");
  return secret;
}

std::unique_ptr<Communicator> connect_first(const RankOptions& options, const Address& address,
                                            const GroupOptions& group) {
  std::vector<FileDescriptor> sockets(1);
  if (options.size > 1) {
    std::string secret = checked_secret(options, address);
    const Listener listener(address);
    sockets = Rendezvous(options, std::move(secret)).accept_all(listener);
  }
  auto [own, of_hub] = socket_pair();
  sockets.front() = std::move(of_hub);
  auto hub = std::make_unique<Hub>(std::move(sockets), group);
  return std::make_unique<Member>(0, group, std::move(own), std::move(hub));
}

std::unique_ptr<Communicator> connect_other(const RankOptions& options, const Address& address,
                                            const GroupOptions& group) {
  const std::string secret = checked_secret(options, address);
  const Clock::time_point deadline = Clock::now() + options.time_limit;
  try {
    FileDescriptor socket = connect(address, deadline);
    FOVEA_CHECK(socket.is_open(), kDeadline, "rank 0 did not come to ", address.text, " within ",
                options.time_limit.count(), " ms");
    shake_hands(socket.get(), options, secret, deadline);
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
  std::vector<FileDescriptor> own;
  std::vector<FileDescriptor> of_hub;
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
