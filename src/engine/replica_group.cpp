// Shares a batch among devices. The only file that knows that there may be more than one.
#include "engine/replica_group.h"

#include <algorithm>
#include <exception>
#include <utility>

#include "core/check.h"

namespace fovea {

namespace {

Assignment assign(const GraphSpec& spec, std::span<const PreparedItem* const> items,
                  std::size_t num_replicas) {
  std::vector<ItemSpec> specs;
  specs.reserve(items.size());
  for (const PreparedItem* item : items) specs.push_back(item->plan.spec);
  return assign_items(spec, specs, num_replicas);
}

/// The elements of `all` at `indices`.
template <class T>
std::vector<T> select(std::span<T const> all, std::span<const std::size_t> indices) {
  std::vector<T> selected;
  selected.reserve(indices.size());
  for (const std::size_t index : indices) selected.push_back(all[index]);
  return selected;
}

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
  for (const auto& [reason, items] : one.miss_reasons) total.miss_reasons[reason] += items;
  for (std::size_t path = 0; path < total.paths.size(); ++path) {
    add(total.paths[path], one.paths[path]);
  }
  total.capture_seconds = std::max(total.capture_seconds, one.capture_seconds);
  total.graph_bytes += one.graph_bytes;
  total.graphs.insert(total.graphs.end(), one.graphs.begin(), one.graphs.end());
}

}  // namespace

ReplicaGroup::ReplicaGroup(std::vector<std::unique_ptr<Replica>> replicas)
    : replicas_(std::move(replicas)), workers_(static_cast<int>(replicas_.size())) {}

void ReplicaGroup::run(std::span<const PreparedItem* const> items, const EncodeOptions& how) {
  if (replicas_.size() == 1) {
    (void)replicas_.front()->run(items, how);
    return;
  }
  const Assignment assignment =
      assign(replicas_.front()->model().graph_spec(), items, replicas_.size());
  for_each_rank([&](std::size_t rank) {
    const std::span<const std::size_t> share = assignment.items(rank);
    if (!share.empty()) (void)replicas_[rank]->run(select(items, share), how);
  });
}

void ReplicaGroup::begin(std::span<const PreparedItem* const> items, const EncodeOptions& how,
                         std::span<Embedding* const> out) {
  begin(items, assign(replicas_.front()->model().graph_spec(), items, replicas_.size()), how, out);
}

void ReplicaGroup::begin(std::span<const PreparedItem* const> items, const Assignment& assignment,
                         const EncodeOptions& how, std::span<Embedding* const> out) {
  if (replicas_.size() == 1) {
    replicas_.front()->begin(items, how, out);
    return;
  }
  for_each_rank([&](std::size_t rank) {
    const std::span<const std::size_t> share = assignment.items(rank);
    if (!share.empty()) replicas_[rank]->begin(select(items, share), how, select(out, share));
  });
}

void ReplicaGroup::finish() {
  for_each([](Replica& replica) { replica.finish(); });
}

void ReplicaGroup::abandon() noexcept {
  for (const auto& replica : replicas_) {
    try {
      replica->finish();
    } catch (...) {  // NOLINT: the caller has a failure to report already
    }
  }
}

void ReplicaGroup::for_each(const std::function<void(Replica&)>& work) {
  for_each_rank([&](std::size_t rank) { work(*replicas_[rank]); });
}

void ReplicaGroup::for_each_rank(const std::function<void(std::size_t)>& work) {
  std::vector<std::exception_ptr> failures(replicas_.size());
  workers_.parallel_for(std::ssize(replicas_), [&](std::int64_t task, int) {
    const auto rank = static_cast<std::size_t>(task);
    try {
      work(rank);
    } catch (...) {  // the others go on: none waits for this one
      failures[rank] = std::current_exception();
    }
  });
  for (std::size_t rank = 0; rank < failures.size(); ++rank) {
    if (!failures[rank]) continue;
    try {
      std::rethrow_exception(failures[rank]);
    } catch (const Error& error) {
      if (replicas_.size() == 1) throw;
      throw Error(error.code(),
                  cat("replica ", rank, " on ", replicas_[rank]->device().properties().name, ": ",
                      error.what()));
    }
  }
}

std::vector<ReplicaStats> ReplicaGroup::stats() const {
  std::vector<ReplicaStats> all;
  for (const auto& replica : replicas_) {
    all.push_back({replica->device().properties().name, replica->graphs().stats()});
  }
  return all;
}

Stats sum(std::span<const ReplicaStats> replicas) {
  Stats total = replicas.front().stats;
  for (const ReplicaStats& replica : replicas.subspan(1)) add(total, replica.stats);
  return total;
}

}  // namespace fovea
