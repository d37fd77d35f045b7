// The replicas of an engine, and their counters.
#include "engine/replicas/replica_group.h"

#include <algorithm>
#include <utility>

#include "core/check.h"

namespace fovea {

namespace {

void add(PathStats& total, const PathStats& one) {
  total.replays += one.replays;
  total.replayed_items += one.replayed_items;
  total.eager_runs += one.eager_runs;
  total.live_rows += one.live_rows;
  total.padded_rows += one.padded_rows;
}

void add(Stats& total, const Stats& one) {
  total.graph_hits += one.graph_hits;
  total.graph_partial += one.graph_partial;
  total.graph_misses += one.graph_misses;
  total.skipped += one.skipped;
  total.num_budgets += one.num_budgets;
  total.sub_batches += one.sub_batches;
  total.units_reused += one.units_reused;
  for (const auto& [reason, items] : one.miss_reasons) total.miss_reasons[reason] += items;
  for (std::size_t path = 0; path < total.paths.size(); ++path) {
    add(total.paths[path], one.paths[path]);
  }
  total.capture_seconds = std::max(total.capture_seconds, one.capture_seconds);
  total.graph_bytes += one.graph_bytes;
  total.graphs.insert(total.graphs.end(), one.graphs.begin(), one.graphs.end());
}

}  // namespace

ReplicaGroup::ReplicaGroup(std::vector<std::unique_ptr<Replica>> replicas,
                           std::int64_t team_patches)
    : replicas_(std::move(replicas)), team_patches_(team_patches) {
  FOVEA_CHECK(!replicas_.empty(), kInvalidArgument, "a group needs at least 1 replica, got 0");
  const std::int64_t heads = replicas_.front()->model().graph_spec().team_heads;
  if (team_patches_ == 0 || heads == 0 || heads % std::ssize(replicas_) != 0) return;
  std::vector<Device*> devices;
  for (const auto& replica : replicas_) devices.push_back(&replica->device());
  table_ = TeamTable::make(devices);
}

bool ReplicaGroup::suits_team(const ItemSpec& share) const noexcept {
  if (table_ == nullptr || share.input_rows < team_patches_) return false;
  const std::optional<int> path = ItemShare::only_path_of(share);
  if (!path) return false;
  const ItemUnits unit = share.units_on(*path);
  return unit.count == 1 && unit.rows > 0 && unit.patches % unit.rows == 0;
}

ReplicaGroup::TeamLoan ReplicaGroup::take_team() {
  if (table_ == nullptr) return {};
  std::unique_lock lock(team_mutex_, std::try_to_lock);
  const auto is_wanted = [](const auto& replica) { return replica->graphs().num_waiting() > 0; };
  if (!lock || std::ranges::any_of(replicas_, is_wanted)) return {};
  return {*table_, std::move(lock)};
}

void ReplicaGroup::for_each(const std::function<void(Replica&)>& work) {
  for (std::size_t rank = 0; rank < replicas_.size(); ++rank) {
    try {
      work(*replicas_[rank]);
    } catch (const Error& error) {
      rethrow_of_replica(error, *this, rank);
    }
  }
}

std::vector<ReplicaStats> ReplicaGroup::stats() const {
  std::vector<ReplicaStats> all;
  for (const auto& replica : replicas_) {
    all.push_back({replica->device().properties().name, replica->graphs().stats(),
                   replica->device().host_waits()});
  }
  return all;
}

void rethrow_of_replica(const Error& error, const ReplicaGroup& group, std::size_t rank) {
  const bool is_interrupt =
      error.code() == ErrorCode::kCancelled || error.code() == ErrorCode::kDeadline;
  if (group.size() == 1 || is_interrupt) throw Error(error);
  throw Error(error.code(), cat("replica ", rank, " on ", group[rank].device().properties().name,
                                ": ", error.what()));
}

Stats sum(std::span<const ReplicaStats> replicas) {
  Stats total = replicas.front().stats;
  for (const ReplicaStats& replica : replicas.subspan(1)) add(total, replica.stats);
  return total;
}

}  // namespace fovea
