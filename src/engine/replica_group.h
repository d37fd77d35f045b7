#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "core/thread_pool.h"
#include "engine/load_balance.h"
#include "engine/replica.h"
#include "fovea/stats.h"

namespace fovea {

/// Replicas of one model that share the items of a batch: data parallelism inside one process.
/// Every replica takes its share by itself, on a thread of its own, and writes finished rows where
/// the caller keeps them; there is nothing to gather, to pad or to wait for but the end. A group of
/// one runs on the calling thread and starts no other. One thread at a time may use a group.
/// Source: docs/reference/encoder_graphs.md, "Data parallelism".
class ReplicaGroup {
 public:
  /// @param replicas at least one, all of one model.
  explicit ReplicaGroup(std::vector<std::unique_ptr<Replica>> replicas);

  /// Runs the tower on items spread over the replicas (assign_items), and leaves the rows on the
  /// devices.
  /// @throws Error of the first replica, in their order, that failed; with several replicas its
  /// message names it. All replicas have ended by then, and are usable afterwards.
  void run(std::span<const PreparedItem* const> items, const EncodeOptions& how);

  /// As run; *out[i] holds the rows of items[i] after finish(). The next call may be a begin: its
  /// tower runs while these rows leave the devices (Replica::begin). After an error call abandon();
  /// `out` is then in part as it was.
  void begin(std::span<const PreparedItem* const> items, const EncodeOptions& how,
             std::span<Embedding* const> out);
  /// As above with the items spread as the caller says.
  void begin(std::span<const PreparedItem* const> items, const Assignment& assignment,
             const EncodeOptions& how, std::span<Embedding* const> out);
  /// @throws as run.
  void finish();
  /// Gives up what was begun: returns when nothing refers to its results any more.
  void abandon() noexcept;

  /// Calls work(replica) for all replicas at once and returns when all have ended.
  /// @throws as run.
  void for_each(const std::function<void(Replica&)>& work);

  [[nodiscard]] std::size_t size() const noexcept { return replicas_.size(); }
  [[nodiscard]] Replica& operator[](std::size_t rank) { return *replicas_[rank]; }

  /// Counters of every replica by itself, in their order.
  [[nodiscard]] std::vector<ReplicaStats> stats() const;

 private:
  /// Calls work(rank) for every replica, on a thread each.
  void for_each_rank(const std::function<void(std::size_t)>& work);

  std::vector<std::unique_ptr<Replica>> replicas_;
  ThreadPool workers_;  // a thread per replica, the calling one included
};

/// Counters added up. Replicas have the same budgets, so these are the first one's; they capture
/// side by side, so capture_seconds are those of the slowest.
[[nodiscard]] Stats sum(std::span<const ReplicaStats> replicas);

}  // namespace fovea
