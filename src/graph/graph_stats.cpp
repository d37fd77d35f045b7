// Counters: every item counts once.
#include "graph/graph_stats.h"

#include <algorithm>

#include "core/check.h"
#include "graph/sized_forward.h"

namespace fovea {

std::string_view to_string(MissReason reason) noexcept {
  switch (reason) {
    case MissReason::kDisabled: return "disabled";
    case MissReason::kRequested: return "requested";
    case MissReason::kTeam: return "team";
    case MissReason::kUnsupportedModality: return "unsupported_modality";
    case MissReason::kPruning: return "pruning";
    case MissReason::kPrecomputed: return "precomputed";
    case MissReason::kFrames: return "frames";
    case MissReason::kOversized: return "oversized";
    case MissReason::kNotCaptured: return "not_captured";
    case MissReason::kCapacity: return "capacity";
    case MissReason::kSlower: return "slower";
  }
  return "unknown";
}

GraphStats::GraphStats(const GraphSpec& spec) : paths_(spec.paths.size()) {
  for (const PathSpec& path : spec.paths) path_names_.push_back(path.name);
}

void GraphStats::ItemRuns::add(PathId path, std::optional<MissReason> miss) noexcept {
  std::optional<MissReason>& first = misses[static_cast<std::size_t>(path)];
  if (!miss) replayed = true;
  if (!first) first = miss;
}

GraphUse GraphStats::ItemRuns::use() const noexcept {
  const bool missed = std::ranges::any_of(misses, [](const auto& miss) { return bool(miss); });
  if (!missed) return GraphUse::kHit;
  return replayed ? GraphUse::kPartial : GraphUse::kMiss;
}

void GraphStats::count_item(const ItemRuns& runs) {
  const GraphUse use = runs.use();
  if (use == GraphUse::kHit) {
    ++hits_;
    return;
  }
  ++(use == GraphUse::kPartial ? partial_ : misses_);
  const auto miss = std::ranges::find_if(runs.misses, [](const auto& path) { return bool(path); });
  ++reasons_[static_cast<std::size_t>(**miss)];
}

void GraphStats::count_replay(PathId path, std::span<const ItemPart> parts, std::int64_t capacity) {
  PathCounters& counters = paths_[static_cast<std::size_t>(path)];
  const GraphCapacity load = exact_capacity(parts);
  ++counters.replays;
  counters.replayed_items += load.items;
  counters.live_rows += load.tokens;
  counters.padded_rows += capacity - load.tokens;
}

void GraphStats::count_eager(PathId path) { ++paths_[static_cast<std::size_t>(path)].eager_runs; }

void GraphStats::log_progress(LogSink* log, std::int64_t interval) {
  const bool crossed = counted() / interval > logged_ / interval;
  logged_ = counted();
  if (!crossed || !is_wanted(log, LogLevel::kDebug)) return;
  const Stats now = snapshot();
  log_to(log, LogLevel::kDebug,
         cat("encoder_graphs.stats hits=", hits_, " partial=", partial_, " misses=", misses_,
             " skipped=", skipped_, " hit_rate=", now.hit_rate(), " sub_batches=", sub_batches_));
}

Stats GraphStats::snapshot() const {
  Stats stats;
  stats.graph_hits = hits_;
  stats.graph_partial = partial_;
  stats.graph_misses = misses_;
  stats.skipped = skipped_;
  stats.sub_batches = sub_batches_;
  stats.units_reused = units_reused_;
  for (std::size_t reason = 0; reason < kNumMissReasons; ++reason) {
    if (reasons_[reason] == 0) continue;
    stats.miss_reasons[std::string(to_string(static_cast<MissReason>(reason)))] = reasons_[reason];
  }
  for (std::size_t path = 0; path < paths_.size(); ++path) {
    const PathCounters& counters = paths_[path];
    stats.paths.push_back({.name = path_names_[path],
                           .token_budgets = {},
                           .replays = counters.replays,
                           .replayed_items = counters.replayed_items,
                           .eager_runs = counters.eager_runs,
                           .live_rows = counters.live_rows,
                           .padded_rows = counters.padded_rows});
  }
  return stats;
}

}  // namespace fovea
