#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <vector>

#include "fovea/error.h"
#include "fovea/export.h"

namespace fovea {

/// Where the bytes of a gather come from, and where they go. Called on the calling thread, with
/// rising offsets; must not throw.
struct GatherPieces {
  /// Writes this rank's bytes from `offset` on. What it leaves out is padding and may be anything.
  std::function<void(std::size_t offset, std::span<std::byte> out)> fill;
  /// Takes bytes of a rank, this one included, which stay where they are until it returns.
  std::function<void(int rank, std::size_t offset, std::span<const std::byte> bytes)> take;
};

/// What connects the ranks of a group: numbered processes, or threads of one, that make the same
/// calls in the same order. A rank whose process ends, that leaves, or that does not come to a
/// gather within the time limit, ends the group: every call on every rank then throws the same
/// Error, which names that rank, and so do all later calls. A new group can be connected at once.
/// One thread at a time may gather; raise() and abort() may be called from any.
class FOVEA_API Communicator {
 public:
  virtual ~Communicator() = default;

  [[nodiscard]] virtual int rank() const noexcept = 0;  ///< of this process or thread, from 0
  [[nodiscard]] virtual int size() const noexcept = 0;  ///< number of ranks, at least 1
  /// For ranks to come to a gather after the first has.
  [[nodiscard]] virtual std::chrono::milliseconds time_limit() const noexcept = 0;

  /// Gathers `bytes` bytes of every rank on every rank, in host memory, piece by piece. Returns
  /// when all pieces were taken.
  /// @param bytes the same on all ranks.
  /// @throws Error(kInvalidArgument) if it is not, and what ended the group: Error(kUnavailable)
  /// for a rank that is gone, Error(kDeadline) for one that is late, or the error of abort().
  virtual void all_gather_pieces(std::size_t bytes, const GatherPieces& pieces) = 0;
  /// As above from and to memory; with no bytes it is a barrier. @param all receives rank after
  /// rank, size() times mine.size(); must not overlap with `mine`.
  void all_gather(std::span<const std::byte> mine, std::span<std::byte> all);

  /// The GPU whose memory all_gather_on_device() takes, or RowBlock::kHost for memory of the host;
  /// absent where it takes none.
  [[nodiscard]] virtual std::optional<int> gather_device() const noexcept = 0;
  /// As above for memory of this rank's GPU, in the order of a stream: returns when the gather is
  /// queued. If the group ends before it is done, `all` holds anything. Before a rank leaves, it
  /// waits for its stream, and then for the others with a gather in host memory.
  /// @param mine, all device pointers; `mine` may lie at its own place in `all`.
  /// @param stream a cudaStream_t.
  /// @throws Error(kUnsupported) without NCCL, Error(kDevice), and as all_gather().
  virtual void all_gather_on_device(const void* mine, void* all, std::size_t bytes,
                                    void* stream) = 0;

  /// Tells all ranks that the next gather will bring a failure, so that they stop what they do.
  virtual void raise() noexcept = 0;
  /// Stopped when a rank has called raise() since the last gather, or when the group has ended.
  [[nodiscard]] virtual std::stop_token raised() const = 0;
  /// Stopped when the group has ended.
  [[nodiscard]] virtual std::stop_token ended() const = 0;

  /// Ends the group with an error of this rank. Never returns.
  /// @throws what all ranks throw: this error with the rank in front, or what came first.
  virtual void abort(const Error& error) = 0;
};

/// Gathers the failures of all ranks: one of each rank or none. Every rank comes to this gather,
/// whatever happened to it, and the group goes on.
/// @return the same on all ranks: nothing if none has failed, else the failure of the lowest rank
/// that has, with that rank in front.
/// @throws as Communicator::all_gather_pieces; Error(kCorruptData) for a rank that announces a
/// message of more than kMaxMessageBytes.
[[nodiscard]] FOVEA_API std::optional<Error> agree(Communicator& ranks,
                                                   const std::optional<Error>& failure);

/// A process of a group.
struct RankOptions {
  int rank = 0;  ///< from 0
  int size = 1;  ///< number of ranks
  /// Where the ranks meet, the same text for all of them; not used by a group of one.
  /// "file:///PATH": processes of one host. A socket of this name exists until all have met; data
  /// goes through memory that has no name, so nothing stays behind, however a process ends.
  /// "tcp://HOST:PORT": rank 0 listens there, data goes through it as it is: for networks in which
  /// nobody reads or changes what others send. Needs a secret unless HOST is a loopback address.
  std::string rendezvous = {};
  /// For the others to come to the rendezvous, and for each of them to come to a gather after the
  /// first has. As long as the slowest rank may take longer than the fastest.
  std::chrono::milliseconds time_limit{60'000};
  /// A file with what all ranks know and nobody else does, at least 16 bytes, better random ones;
  /// empty: the variable FOVEA_RANKS_SECRET, if there is one. It is proved, never sent.
  std::string secret_file = {};
};

/// Connects the processes of a group, and returns when all are there. A thread of rank 0 carries
/// what they say to each other; it ends with the communicator of rank 0.
/// @throws Error(kInvalidArgument) for options that contradict each other, those of another rank,
/// a file that is something else, or a secret that is missing or that of another group;
/// Error(kDeadline) naming the ranks that did not come, Error(kUnavailable) for a rank that ended,
/// Error(kIo) with the system's reason.
[[nodiscard]] FOVEA_API std::unique_ptr<Communicator> connect_ranks(const RankOptions& options);

/// Connects the threads of a group: one communicator for each rank, in their order.
/// @throws Error(kInvalidArgument) if size < 1, Error(kIo), Error(kOutOfMemory).
[[nodiscard]] FOVEA_API std::vector<std::unique_ptr<Communicator>> connect_threads(
    int size, std::chrono::milliseconds time_limit = std::chrono::milliseconds(60'000));

/// Adds all_gather_on_device() through NCCL to a group; everything else goes on as before. All
/// ranks call this, each with its own GPU as the current device of the calling thread. The library
/// libnccl.so.2 is searched where the system's loader searches. NVLink multicast stays off: this
/// sets NCCL_NVLS_ENABLE=0 in the environment, so call it before other threads read that.
/// @throws on all ranks: Error(kUnsupported) if NCCL cannot be loaded on one of them,
/// Error(kDevice) with NCCL's message, and as Communicator::all_gather; the group has ended then.
[[nodiscard]] FOVEA_API std::unique_ptr<Communicator> add_nccl(std::unique_ptr<Communicator> ranks);

}  // namespace fovea
