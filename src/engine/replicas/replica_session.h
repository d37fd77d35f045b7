#pragma once

#include <array>
#include <cstddef>
#include <span>
#include <vector>

#include "device/recent_need.h"
#include "engine/replicas/replica.h"
#include "engine/replicas/row_delivery.h"
#include "engine/replicas/row_download.h"
#include "fovea/embedding.h"
#include "fovea/engine.h"
#include "fovea/tower/device/device.h"
#include "fovea/tower/models/encoder_graph_model.h"
#include "rows/row_cache.h"

namespace fovea {

/// What one caller has of its own on a replica: memory for the rows of a batch, and their way to
/// their sinks. Sessions of one replica may run at the same time; one thread at a time may use a
/// session.
class ReplicaSession {
 public:
  /// `replica` must outlive the session.
  explicit ReplicaSession(Replica& replica);

  /// Runs the tower on prepared items. The rows of items[i] are device memory, valid until the next
  /// run.
  /// @throws Error of the model or the device, or of the interrupt of this thread; session and
  /// replica are usable afterwards.
  [[nodiscard]] std::span<const TensorView> run(std::span<const PreparedItem* const> items,
                                                const EncodeOptions& how);

  /// Rows on GPUs are ordered with this stream of the caller, until finish().
  void attach(const CallerStream& stream) { delivery_.attach(stream); }
  /// As run; then starts to fill in what the tower knows about the results: rows, width and dtype
  /// of out[i], its data in memory of its own or its block, and its share of the times of the
  /// batch. They are there after finish(), and so are those begun before; until then what `out`
  /// refers to must stay, also if this call throws. The next call may be a begin: its tower runs
  /// while these rows leave. If all sinks are on GPUs, the host waits for no rows.
  void begin(std::span<const PreparedItem* const> items, const EncodeOptions& how,
             std::span<const RowSink> out);
  /// As begin for rows of the encoder cache: out[i] gets those of found[i], which the session holds
  /// as long as it reads them. Rows on the host go back to the device if they are wanted on a GPU.
  void begin_cached(std::vector<RowCache::Claim> found, const EncodeOptions& how,
                    std::span<const RowSink> out);
  /// Returns when the rows that begin has started are there; those on GPUs for what is put on the
  /// attached stream from now on.
  /// @throws Error of the device, Error(kOutOfMemory).
  void finish();
  /// Gives up what was begun: returns when nothing writes to sinks any more.
  void abandon() noexcept;

  [[nodiscard]] Replica& replica() const noexcept { return replica_; }

 private:
  /// Memory for the rows of a batch. Grows to the largest batch; shrinks when 32 batches have
  /// needed less than half of it.
  struct RowMemory {
    Buffer buffer;
    RecentNeed recent;

    /// Whether it must be replaced to hold a batch of `bytes`.
    [[nodiscard]] bool must_change(std::size_t bytes);
  };
  /// At least `bytes` of the next slot, zeroed or with rows of an earlier batch.
  /// @param is_ordered what writes there waits for the queue of the slot on the device.
  [[nodiscard]] std::byte* reserve(std::size_t bytes, bool is_ordered);
  /// As run; fills in uses_. @param times of the run. @param reader as GraphManager::execute.
  std::span<const TensorView> run(std::span<const PreparedItem* const> items,
                                  const EncodeOptions& how, RunTimes& times, Stream* reader);
  /// Stores those of rows_ that are to be kept.
  void keep(std::span<const RowSink> out);
  /// Starts rows_ on their way.
  void send(const EncodeOptions& how, std::span<const RowSink> out);

  Replica& replica_;
  std::array<RowMemory, 2> row_memory_;
  std::size_t slot_ = 0;                  // of the next run: rows may be leaving the other
  std::vector<TensorView> rows_;          // of the last run
  std::vector<GraphUse> uses_;            // of its items
  std::vector<RowCache::Claim> reading_;  // of rows that the download reads
  RowDelivery delivery_;                  // these last: they end before what they read
  RowDownload download_;
};

}  // namespace fovea
