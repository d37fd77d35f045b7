#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <future>
#include <memory>
#include <optional>
#include <vector>

#include "fovea/call_bounds.h"
#include "fovea/embedding.h"
#include "fovea/engine.h"
#include "fovea/export.h"
#include "fovea/media.h"
#include "fovea/planned_item.h"

namespace fovea {

/// What a Batcher accepts, and what it puts together.
struct BatcherOptions {
  /// Bounds of what is accepted and not complete, of all requests together. What does not fit is
  /// refused at once.
  std::int64_t max_items = 1024;
  std::int64_t max_bytes = std::int64_t{1} << 30;  ///< that items hold in memory, not in files
  std::int64_t max_rows = std::int64_t{1} << 20;   ///< as far as headers tell
  /// Bounds of a batch. A request beyond one of them runs by itself. 0: what one graph holds,
  /// without graphs 8192 rows and 64 items.
  std::int64_t max_batch_rows = 0;
  std::int64_t max_batch_items = 0;
  /// How long a request waits for others that could run with it, while the engine is at work. An
  /// idle engine never waits, nor does a batch that is full. At most a year.
  std::chrono::microseconds max_delay{1000};
};

/// A request that was accepted; of one batcher.
struct Ticket {
  std::uint64_t number = 0;
  friend bool operator==(const Ticket&, const Ticket&) = default;
};

/// What became of a request.
struct BatchReply {
  std::vector<Embedding> items;  ///< one for each item, in their order; empty if there is an error
  std::optional<Error> error;    ///< of the request as a whole
  double queue_ms = 0;           ///< from submit() to the beginning of its batch, or to its end
  double run_ms = 0;             ///< of its batch, from encoded bytes to rows in host memory
  std::int64_t batch_items = 0;  ///< of all requests that ran with it, its own included
  std::int64_t batch_rows = 0;   ///< the same, as far as headers tell
  std::uint64_t batch = 0;       ///< number of the batch, from 1 on; 0: it was in none
};

/// Counters of a batcher, all of the same moment.
struct BatcherStats {
  // Accepted and not complete.
  std::int64_t requests = 0;
  std::int64_t items = 0;
  std::int64_t bytes = 0;
  std::int64_t rows = 0;
  std::int64_t queued_requests = 0;  ///< of these, in no batch yet
  std::int64_t running_batches = 0;

  // Since the batcher was made. A request that is complete counts as exactly one of the first four.
  std::int64_t completed = 0;
  std::int64_t failed = 0;
  std::int64_t cancelled = 0;
  std::int64_t expired = 0;  ///< missed their deadline
  std::int64_t accepted = 0;
  std::int64_t refused = 0;  ///< by submit(), for whatever reason
  std::int64_t batches = 0;  ///< that have ended
  std::int64_t batch_requests = 0;
  std::int64_t batch_items = 0;
  std::int64_t batch_rows = 0;
  std::int64_t repeated_batches = 0;  ///< failed as a whole and ran again, request by request
  double queue_seconds = 0;           ///< sum of BatchReply::queue_ms of the requests of batches
  double run_seconds = 0;             ///< sum over the batches
  /// When a batch last ended, or the items of a large one were done.
  std::chrono::steady_clock::time_point last_progress;
  /// When work of a batch last moved: a piece of an op on a CPU, a sub-batch on a GPU, rows of an
  /// image that is decoded. Not earlier than last_progress. A watchdog looks at this while
  /// running_batches is not 0: a single large item may take minutes, but something always moves.
  std::chrono::steady_clock::time_point last_movement;
};

/// Puts requests of many callers together: items of different requests share a batch, by rows, and
/// the items of the next batch are decoded while the tower runs on the present one. What is too
/// large for a batch runs by itself as one call of the engine, and small requests pass it after
/// every sub-batch (Engine). Rows are those of Engine::encode(); on a CPU, and on a GPU as far as
/// the engine promises it, they do not depend on what they ran with.
///
/// An item that fails, fails its request at most. If a batch fails as a whole, its requests run
/// again one by one, and each has its own error. All functions may be called from any thread, also
/// from callbacks where it is not said otherwise. A moved-from batcher may only be destroyed or
/// assigned to.
class FOVEA_API Batcher {
 public:
  /// Called on a thread of the batcher, exactly once for every request that was accepted, never
  /// from inside submit() or cancel(). Should be short: the thread has other requests to see to.
  /// What it throws is dropped.
  using Done = std::function<void(BatchReply reply)>;

  /// Starts 7 threads.
  /// @param engine must outlive the batcher, and may be used by others.
  /// @throws Error(kInvalidArgument) for a bound below 1 where 0 has no meaning or a longer
  /// max_delay, Error(kIo) if threads cannot be started, Error(kOutOfMemory).
  explicit Batcher(Engine& engine, const BatcherOptions& options = {});
  Batcher(Batcher&&) noexcept;
  Batcher& operator=(Batcher&&) noexcept;
  /// As stop().
  ~Batcher();

  /// Accepts a request. Reads the headers of its items on the calling thread, of files 128 KiB at
  /// most.
  /// @param options as for Engine::encode(), without `progress` and `copies`. Under OnError::kFail
  /// the error of the first item that failed is that of the request. With `has_room` it runs by
  /// itself. `bounds` hold from now on, in the queue as well: the request is complete at once when
  /// they end it, and what it ran with goes on.
  /// @throws Error(kUnavailable), and accepts nothing, if there is no room for the request now or
  /// the batcher has ended, Error(kInvalidArgument) if it will never have room for it, for a
  /// request without items, and for `progress` and `copies`, Error(kOutOfMemory).
  Ticket submit(std::vector<MediaItem> items, const EncodeOptions& options, Done done);
  /// As above, for items that are planned: reads nothing.
  Ticket submit(std::vector<PlannedItem> items, const EncodeOptions& options, Done done);

  /// A request whose rows are waited for.
  struct Pending {
    Ticket ticket;
    /// The items of the reply, or its Error. May be waited for by any thread that is none of the
    /// batcher's.
    std::future<std::vector<Embedding>> rows;
  };
  /// As the functions above, without a callback.
  [[nodiscard]] Pending submit(std::vector<MediaItem> items, const EncodeOptions& options = {});
  [[nodiscard]] Pending submit(std::vector<PlannedItem> items, const EncodeOptions& options = {});

  /// Ends a request with Error(kCancelled). If nobody else needs the call that encodes it, the
  /// engine stops its work.
  /// @return whether this ends it: it was not complete, and nobody had cancelled it.
  bool cancel(Ticket ticket);

  /// Accepts nothing more and returns when all requests are complete and their callbacks have
  /// returned. Not from a callback.
  /// @throws Error(kCancelled) or Error(kDeadline) as `bounds` say; requests then go on.
  void drain(const CallBounds& bounds = {});

  /// Accepts nothing more, ends all requests with Error(kCancelled) and returns when their
  /// callbacks have returned. Not from a callback.
  void stop() noexcept;

  /// Reads counters; waits for no batch and no callback.
  [[nodiscard]] BatcherStats stats() const noexcept;
  /// As given, with the numbers that 0 stood for.
  [[nodiscard]] const BatcherOptions& options() const noexcept;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace fovea
