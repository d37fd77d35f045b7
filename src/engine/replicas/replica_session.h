#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "engine/replicas/replica_group.h"
#include "fovea/embedding.h"
#include "fovea/engine.h"
#include "fovea/tower/models/encoder_graph_model.h"
#include "rows/batch_memory.h"
#include "rows/row_cache.h"
#include "rows/row_mover.h"
#include "rows/row_target.h"

namespace fovea {

/// An item for the tower, or a share of it: what it is, where its rows go, and who keeps them.
/// Refers to all of it.
struct TowerItem {
  const PreparedItem* prepared;
  RowTarget target = {};            ///< without a result the rows stay on the device
  RowCache::Claim* keep = nullptr;  ///< stores the rows as the tower leaves them; may be null
  ItemShare share = {};
  /// Where the rows of a share begin in those that `keep` has begun to store; absent: it stores
  /// nothing but these.
  std::optional<std::int64_t> keep_at = {};

  /// The sizes of the share.
  [[nodiscard]] ItemSpec spec() const { return share.spec_of(prepared->plan.spec); }
};

/// What one caller has of its own on a replica: memory for the rows of a batch, and their way to
/// their targets. Sessions of one replica may run at the same time; one thread at a time may use a
/// session.
class ReplicaSession {
 public:
  /// `replica` must outlive the session.
  explicit ReplicaSession(Replica& replica);

  /// Rows for GPUs are ordered with these streams of the caller, until finish().
  void attach(std::span<const CallerStream> streams) { mover_.attach(streams); }
  /// Runs the tower; then starts to fill in what it knows about the results: rows, width and dtype,
  /// the rows in their targets, and their share of the times of the batch. They are there after
  /// finish(), and so are those begun before; until then targets must stay, also if this call
  /// throws. The next call may be a begin: its tower runs while these rows leave. If all targets
  /// are on GPUs, the host waits for no rows.
  /// @param team where the item is the part that this replica computes of one, the table at which
  /// all do; else null.
  /// @throws Error of the model or the device, or of the interrupt of this thread; session and
  /// replica are usable afterwards.
  void begin(std::span<const TowerItem> items, const EncodeOptions& how, TeamTable* team = nullptr);
  /// As begin for rows that no tower has to compute. Those of the cache on the host go back to the
  /// device if they are wanted on a GPU.
  void move(std::vector<RowMove> moves) { mover_.move(std::move(moves), &mover_.queue()); }
  /// Returns when the rows that were begun are there; those on GPUs for what is put on the attached
  /// streams from now on.
  /// @throws Error of the device, Error(kOutOfMemory).
  void finish() { mover_.finish(); }
  /// Gives up what was begun: returns when nothing writes to targets any more.
  void abandon() noexcept { mover_.abandon(); }

  [[nodiscard]] Replica& replica() const noexcept { return replica_; }
  /// Of the items that were begun last: device memory, valid until the next ones are begun.
  [[nodiscard]] std::span<const TensorView> rows() const noexcept { return rows_; }

 private:
  /// Runs the tower on shares of items; fills in rows_ and uses_. @param reader, team as
  /// RunOptions.
  [[nodiscard]] RunTimes run(std::span<const TowerItem> items, const EncodeOptions& how,
                             Stream* reader, TeamTable* team);
  [[nodiscard]] std::vector<ExpectedRows> expected_rows(std::span<const TowerItem> items) const;
  /// Stores rows for others, behind what `queue` holds.
  void keep(const TowerItem& item, const TensorView& rows, Stream& queue);

  Replica& replica_;
  std::array<BatchMemory, 2> memory_;
  std::size_t slot_ = 0;          // of the next run: rows may be leaving the other
  std::vector<TensorView> rows_;  // of the last run
  std::vector<ItemUse> uses_;     // of its items
  RowMover mover_;                // last: it ends before what it reads
};

}  // namespace fovea
