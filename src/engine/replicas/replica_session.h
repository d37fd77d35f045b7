#pragma once

#include <array>
#include <cstddef>
#include <span>
#include <vector>

#include "device/recent_need.h"
#include "engine/replicas/replica.h"
#include "engine/replicas/row_download.h"
#include "fovea/embedding.h"
#include "fovea/engine.h"
#include "fovea/tower/device/device.h"
#include "fovea/tower/models/encoder_graph_model.h"

namespace fovea {

/// What one caller has of its own on a replica: memory for the rows of a batch, and their way to
/// the host. Sessions of one replica may run at the same time; one thread at a time may use a
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

  /// As run; then starts to fill in what the tower knows about the results: rows, width and dtype
  /// of *out[i], its data in memory of its own, and its share of the times of the batch. They are
  /// there after finish(), and so are those begun before; until then what `out` refers to must
  /// stay, also if this call throws. The next call may be a begin: its tower runs while these rows
  /// leave.
  void begin(std::span<const PreparedItem* const> items, const EncodeOptions& how,
             std::span<Embedding* const> out);
  /// Returns when nothing that begin has started is in flight.
  /// @throws Error of the device, Error(kOutOfMemory).
  void finish() { download_.finish(); }

  [[nodiscard]] Replica& replica() const noexcept { return replica_; }

 private:
  /// Memory for the rows of a batch. Grows to the largest batch; shrinks when 32 batches have
  /// needed less than half of it.
  struct RowMemory {
    Buffer buffer;
    RecentNeed recent;

    /// At least `bytes`, zeroed or with rows of an earlier batch.
    [[nodiscard]] std::byte* reserve(Device& device, std::size_t bytes);
  };
  /// As run. @param times of the run.
  std::span<const TensorView> run(std::span<const PreparedItem* const> items,
                                  const EncodeOptions& how, RunTimes& times);

  Replica& replica_;
  std::array<RowMemory, 2> row_memory_;
  std::size_t slot_ = 0;          // of the next run: rows may be leaving the other
  std::vector<TensorView> rows_;  // of the last run
  RowDownload download_;          // last: it ends before what it reads
};

}  // namespace fovea
