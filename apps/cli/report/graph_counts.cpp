// What is said about graphs: differences of the engine's counters.
#include "report/graph_counts.h"

namespace fovea::cli {
namespace {

std::int64_t sum_of(const Stats& stats, std::int64_t PathStats::*member) {
  std::int64_t sum = 0;
  for (const PathStats& path : stats.paths) sum += path.*member;
  return sum;
}

}  // namespace

GraphCounts& GraphCounts::operator+=(const GraphCounts& other) noexcept {
  hits += other.hits;
  partial += other.partial;
  misses += other.misses;
  encoder_calls += other.encoder_calls;
  live_rows += other.live_rows;
  padded_rows += other.padded_rows;
  return *this;
}

double GraphCounts::hit_rate() const noexcept {
  return items() == 0 ? 0 : static_cast<double>(hits) / static_cast<double>(items());
}

double GraphCounts::partial_rate() const noexcept {
  return items() == 0 ? 0 : static_cast<double>(partial) / static_cast<double>(items());
}

double GraphCounts::padding() const noexcept {
  const std::int64_t rows = live_rows + padded_rows;
  return rows == 0 ? 0 : static_cast<double>(padded_rows) / static_cast<double>(rows);
}

GraphCounts counts_between(const Stats& before, const Stats& after) {
  const auto grown = [&](std::int64_t PathStats::*member) {
    return sum_of(after, member) - sum_of(before, member);
  };
  return {.hits = after.graph_hits - before.graph_hits,
          .partial = after.graph_partial - before.graph_partial,
          .misses = after.graph_misses - before.graph_misses,
          .encoder_calls = after.sub_batches - before.sub_batches,
          .live_rows = grown(&PathStats::live_rows),
          .padded_rows = grown(&PathStats::padded_rows)};
}

}  // namespace fovea::cli
