#pragma once

#include <cstdint>
#include <future>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "fovea/embedding.h"
#include "fovea/row_block.h"
#include "fovea/tower/core/row_copy.h"
#include "fovea/tower/core/tensor_view.h"
#include "fovea/tower/device/device.h"
#include "rows/row_cache.h"
#include "rows/row_target.h"

namespace fovea {

/// Rows on their way to a target, and what they lie in where nobody else keeps it for them.
struct RowMove {
  /// Who may read the rows, and when.
  enum class Source : std::uint8_t {
    kDevice,  ///< memory of the device, behind what the queue of the move holds
    kHost,    ///< memory of the host, now
    kCaller,  ///< memory of the caller on a GPU, when the attached streams have come to it
  };

  /// Packed rows, in memory that stays until the mover has finished.
  RowMove(ConstTensorView view, const RowTarget& to, Source where = Source::kDevice)
      : rows(packed_rows(view)), source(where), target(to) {}
  /// Rows of the caller, in a block that stays as long.
  RowMove(const RowBlock& block, std::int64_t width, const RowTarget& to)
      : rows(rows_of_block(block, width)),
        source(block.device == RowBlock::kHost ? Source::kHost : Source::kCaller),
        target(to) {}
  /// Rows of the cache.
  RowMove(RowCache::Claim found, const RowTarget& to) : target(to), claim(std::move(found)) {}

  RowCopy rows;  ///< where they are; of those of the cache the mover finds out
  Source source = Source::kDevice;
  RowTarget target;
  std::optional<RowCache::Claim> claim = {};  ///< of rows of the cache
  RowBytes bytes = {};                        ///< in which the rows lie; else empty
};

/// What will be moved to a target.
struct ExpectedRows {
  std::int64_t rows = 0;
  std::int64_t width = 0;
  RowTarget target;
};

/// Takes rows of a device, of its encoder cache and of the caller to their targets, while the
/// device computes the next ones. Rows for GPUs do not touch the host:
///
///     streams of the caller --wait--> queue of the rows --copies--> block
///                                                       --wait--> streams of the caller
///
/// Each memory of rows has a queue of its own, which whoever writes to the memory again lets its
/// work wait for: rows of the next batch are computed while the caller's stream has not come to
/// those of this one. Rows for the host go in two steps that overlap piece by piece:
///
///     device --a queue--> one of two pinned buffers --threads--> Embedding::data or block
///
/// Rows that are on the host take the second step only, and of a device that computes in host
/// memory nothing runs in the background. Fresh memory for them costs a page fault every 4 KiB,
/// which together takes longer than both copies: expect() takes these while the device computes the
/// rows. What moves hold they hold until the rows are there. Not thread-safe.
class RowMover {
 public:
  /// `device` must outlive this object.
  explicit RowMover(Device& device);
  RowMover(const RowMover&) = delete;
  RowMover& operator=(const RowMover&) = delete;
  /// Waits for all copies.
  ~RowMover();

  /// Rows for GPUs are ordered with these streams of the caller, until finish(); if there is none,
  /// or kNone among them, finish() waits for the rows.
  void attach(std::span<const CallerStream> streams);
  /// A queue for rows that lie in no memory of a batch.
  [[nodiscard]] Stream& queue();
  /// For rows that nobody but the caller waits for: the attached stream itself, the first one;
  /// queue() if there is none. Valid until the next attach() or finish().
  /// @throws as Device::adopt_stream.
  [[nodiscard]] Stream& callers_queue();

  /// Begins to make memory for rows that the device is about to compute, in the background, for
  /// those targets for which move() would: call it before waiting for the device. Where that fails
  /// move() tries again.
  void expect(std::vector<ExpectedRows> rows);
  /// Gives this memory back: the rows will not come.
  void expect_nothing() noexcept;

  /// Starts to move rows: fills in rows, width and dtype of the results at once for targets on
  /// GPUs, and else by finish(), with the rows and a share of the time in times.output_ms. Rows for
  /// the host that were begun before are there when it returns.
  /// @param queue of this device, on which rows for GPUs are copied, and those of the cache brought
  /// back; stays until the next finish() or abandon(). Null: there are none.
  /// @throws Error of the device, Error(kOutOfMemory), also of the rows before,
  /// Error(kInvalidArgument) for attached streams as Device::adopt_stream.
  void move(std::vector<RowMove> moves, Stream* queue);

  /// Returns when all rows are there; those on GPUs, with a stream, for what is put on it from now
  /// on. Rows that the host has uploaded are waited for in any case.
  /// @throws as move; nothing writes to the host any more then.
  void finish();
  /// Returns when nothing writes to targets any more.
  void abandon() noexcept;

 private:
  struct ToHost;  // threads, and pinned buffers
  /// A queue that has copied rows to GPUs since attach().
  struct Used {
    Stream* queue;
    std::vector<RowBytes> uploads = {};  // from the host, and what of it goes with them
  };

  void copy_to_gpus(std::span<RowMove> moves, Stream& queue);
  void copy_to_gpu(RowMove& move, Stream& queue);
  [[nodiscard]] Used& use(Stream& queue);
  void adopt_streams();
  /// Makes a queue wait for what the attached streams hold.
  void wait_for_callers(Stream& queue);
  void start_to_host(std::vector<RowMove> moves);
  void finish_host();
  void finish_room() noexcept;

  Device& device_;
  bool on_host_;
  bool waits_ = true;                             // in finish()
  std::vector<CallerStream> streams_;             // attached
  std::vector<std::unique_ptr<Stream>> callers_;  // these, once they are needed
  std::vector<Used> used_;
  std::unique_ptr<Stream> queue_;              // of queue()
  std::unique_ptr<ToHost> to_host_;            // once it is needed
  std::vector<ExpectedRows> expected_;         // that have not moved
  std::future<void> room_;                     // of expect()
  std::future<std::vector<RowMove>> running_;  // last: it ends before what it uses
};

}  // namespace fovea
