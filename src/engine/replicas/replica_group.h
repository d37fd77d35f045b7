#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <utility>
#include <vector>

#include "fovea/error.h"
#include "fovea/stats.h"
#include "fovea/tower/device/device.h"
#include "fovea/tower/graph/graph_manager.h"
#include "fovea/tower/models/encoder_graph_model.h"
#include "graph/team_table.h"

namespace fovea {

/// One device of an engine: a model on it, and its graphs. It does not know whether there are other
/// replicas. Callers run it through sessions of their own.
class Replica {
 public:
  /// `model` lives on `device`, or in host memory that the device computes in. Both must outlive
  /// the replica. Captures nothing.
  Replica(const EncoderGraphModel& model, Device& device, const GraphManagerOptions& options)
      : model_(model), device_(device), graphs_(model, device, options) {}

  [[nodiscard]] const EncoderGraphModel& model() const noexcept { return model_; }
  [[nodiscard]] Device& device() const noexcept { return device_; }
  [[nodiscard]] GraphManager& graphs() noexcept { return graphs_; }
  [[nodiscard]] const GraphManager& graphs() const noexcept { return graphs_; }

 private:
  const EncoderGraphModel& model_;
  Device& device_;
  GraphManager graphs_;
};

/// Replicas of one model that share the items of a batch: data parallelism inside one process.
/// Callers run them through group sessions of their own.
/// Source: docs/reference/encoder_graphs.md, "Data parallelism".
class ReplicaGroup {
 public:
  /// @param replicas at least one, all of one model.
  /// @param team_patches as EngineOptions::team_patches, 0 for a group without teams.
  /// @throws Error(kDevice), Error(kOutOfMemory).
  explicit ReplicaGroup(std::vector<std::unique_ptr<Replica>> replicas,
                        std::int64_t team_patches = 0);

  /// Calls work(replica) for every replica, one after the other.
  /// @throws what `work` throws; of several replicas an Error names the one that failed.
  void for_each(const std::function<void(Replica&)>& work);

  [[nodiscard]] std::size_t size() const noexcept { return replicas_.size(); }
  [[nodiscard]] Replica& operator[](std::size_t rank) const { return *replicas_[rank]; }

  /// Whether all replicas together would compute the unit of this share of an item.
  [[nodiscard]] bool suits_team(const ItemSpec& share) const noexcept;
  /// All replicas as a team, until it goes; null while others have it, or wait for a replica: each
  /// is then better off with a replica of its own.
  class TeamLoan {
   public:
    TeamLoan() = default;
    TeamLoan(TeamTable& table, std::unique_lock<std::mutex> lock)
        : table_(&table), lock_(std::move(lock)) {}
    [[nodiscard]] TeamTable* get() const noexcept { return table_; }

   private:
    TeamTable* table_ = nullptr;
    std::unique_lock<std::mutex> lock_;
  };
  [[nodiscard]] TeamLoan take_team();

  /// Counters of every replica by itself, in their order.
  [[nodiscard]] std::vector<ReplicaStats> stats() const;

 private:
  std::vector<std::unique_ptr<Replica>> replicas_;
  std::int64_t team_patches_;
  std::unique_ptr<TeamTable> table_;  // null: these replicas cannot be a team
  std::mutex team_mutex_;
};

/// Throws `error` again, with the replica of this rank in front if it is one of several. The end of
/// a call by its interrupt is no replica's error, and stays as it is.
[[noreturn]] void rethrow_of_replica(const Error& error, const ReplicaGroup& group,
                                     std::size_t rank);

/// Counters added up. Replicas have the same budgets, so these are the first one's; they capture
/// side by side, so capture_seconds are those of the slowest.
[[nodiscard]] Stats sum(std::span<const ReplicaStats> replicas);

}  // namespace fovea
