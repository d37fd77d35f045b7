// Tables and lines of `fovea encode`.
#include "report/encode_report.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>

#include "report/table.h"
#include "report/text.h"

namespace fovea::cli {
namespace {

constexpr std::size_t kNameLength = 36;

std::string grid_text(const Embedding& item) {
  return item.grid_thw ? join(*item.grid_thw, "x") : "-";
}

std::string source_text(const Embedding& item) {
  if (item.source_width_px == 0) return "-";  // came as pixel values
  const std::string size = size_text(item.source_width_px, item.source_height_px);
  return item.modality == Modality::kVideo ? size + "x" + std::to_string(item.num_frames) + "f"
                                           : size;
}

void append_stages(std::vector<std::string>& cells, const StageTimes& times) {
  for (const Stage& stage : kStages) cells.push_back(fixed(times.*stage.ms, 2));
}

void append_item(std::vector<std::string>& cells, const Embedding& item) {
  cells.push_back(shorten_path(one_line(item.name), kNameLength));
  if (item.error) {
    cells.emplace_back("failed");
    return;
  }
  cells.insert(cells.end(),
               {source_text(item), size_text(item.resized_width_px, item.resized_height_px),
                grid_text(item), std::to_string(item.rows)});
  append_stages(cells, item.times);
}

/// "1 replay and 2 eager runs".
std::string runs_text(const PathStats& path) {
  std::vector<std::string> runs;
  if (path.replays > 0) runs.push_back(counted(path.replays, "replay"));
  if (path.eager_runs > 0) runs.push_back(counted(path.eager_runs, "eager run"));
  return join(runs, " and ");
}

/// "global: 1 replay, local: 1 eager run".
std::string paths_text(std::span<const PathStats> paths) {
  std::vector<std::string> texts;
  for (const PathStats& path : paths) {
    if (path.replays + path.eager_runs > 0) texts.push_back(path.name + ": " + runs_text(path));
  }
  return join(texts, ", ");
}

/// "64 256", or "(global: 272 544, local: 100)" if a path has other budgets than the common ones.
std::string budgets_text(const Stats& stats) {
  const bool have_own = std::ranges::any_of(stats.paths, [&](const PathStats& path) {
    return !path.token_budgets.empty() && path.token_budgets != stats.token_budgets;
  });
  if (!have_own) return join(stats.token_budgets, " ");
  std::vector<std::string> texts;
  for (const PathStats& path : stats.paths) {
    texts.push_back(path.name + ": " + join(path.token_budgets, " "));
  }
  return "(" + join(texts, ", ") + ")";
}

std::int64_t sum_of(const Stats& stats, std::int64_t PathStats::*member) {
  std::int64_t sum = 0;
  for (const PathStats& path : stats.paths) sum += path.*member;
  return sum;
}

}  // namespace

std::string difference_text(std::optional<double> difference) {
  if (!difference) return "-";
  if (!std::isfinite(*difference)) return "not finite";
  std::array<char, 32> text{};
  const auto [end, failure] = std::to_chars(text.data(), text.data() + text.size(), *difference,
                                            std::chars_format::scientific, 1);
  return {text.data(), end};
}

std::string items_table(std::span<const Embedding> items,
                        std::span<const std::optional<double>> differences) {
  using enum Table::Align;
  std::vector<Table::Column> columns{{"#"},       {"item", kLeft}, {"size"},
                                     {"resized"}, {"grid"},        {"rows"}};
  for (const Stage& stage : kStages) columns.push_back({std::string(stage.name) + " ms"});
  const bool compared = !differences.empty();
  if (compared) columns.push_back({"difference"});
  Table table(columns);
  StageTimes sum;
  std::int64_t rows = 0;
  for (std::size_t i = 0; i < items.size(); ++i) {
    std::vector<std::string> cells{std::to_string(i)};
    append_item(cells, items[i]);
    if (compared && !items[i].error) cells.push_back(difference_text(differences[i]));
    table.add_row(std::move(cells));
    if (items[i].error) continue;
    sum += items[i].times;
    rows += items[i].rows;
  }
  table.add_rule();
  std::vector<std::string> sums{"", "sum", "", "", "", std::to_string(rows)};
  append_stages(sums, sum);
  table.add_row(std::move(sums));
  return table.text();
}

std::string graphs_text(const Stats& stats) {
  const GraphCounts counts = counts_between({}, stats);
  std::string line = std::to_string(counts.hits) + " of " + std::to_string(counts.items()) +
                     " items replayed (" + percent(counts.hit_rate()) + ")";
  if (counts.partial > 0) {
    line += ", " + std::to_string(counts.partial) + " in part (" + paths_text(stats.paths) + ")";
  }
  if (stats.sub_batches > 0) line += ", " + counted(stats.sub_batches, "sub-batch", "sub-batches");
  if (stats.units_reused > 0) {
    line += ", " + counted(stats.units_reused, "frame or tile", "frames or tiles") + " reused";
  }
  if (!stats.token_budgets.empty()) line += ", budgets " + budgets_text(stats);
  if (counts.live_rows > 0) line += ", padding " + percent(counts.padding());
  const char* const where_eager = counts.partial > 0 ? " eager on some path: " : " eager: ";
  for (const auto& [reason, count] : stats.miss_reasons) {
    line += ", " + std::to_string(count) + where_eager + reason;
  }
  return line;
}

std::string replica_lines(std::span<const ReplicaStats> replicas) {
  if (replicas.size() == 1) return "";
  std::string lines;
  for (const ReplicaStats& replica : replicas) {
    Stats stats = replica.stats;
    stats.token_budgets.clear();  // those of the line before
    lines += "        " + replica.device + ": " + graphs_text(stats) + "\n";
  }
  return lines;
}

namespace {

std::string tier_line(const char* name, const CacheTierStats& tier) {
  std::string line = std::string("        ") + name + ": " + counted(tier.hits, "hit") + ", " +
                     counted(tier.items, "item") + " in " +
                     bytes_text(static_cast<std::size_t>(tier.bytes)) + " of " +
                     bytes_text(static_cast<std::size_t>(tier.capacity_bytes));
  if (tier.evictions > 0) line += ", " + std::to_string(tier.evictions) + " evicted";
  return line + "\n";
}

}  // namespace

std::string cache_line(const EncoderCacheStats& cache) {
  if (cache.capacity_bytes == 0) return "";
  const std::int64_t asked = cache.hits + cache.joins + cache.misses + cache.bypasses;
  std::string line = "cache   " + std::to_string(cache.hits + cache.joins) + " of " +
                     counted(asked, "item") + " not encoded again (" + percent(cache.hit_rate()) +
                     "), " + counted(cache.items, "item") + " kept in " +
                     bytes_text(static_cast<std::size_t>(cache.bytes)) + " of " +
                     bytes_text(static_cast<std::size_t>(cache.capacity_bytes));
  if (cache.evictions > 0) line += ", " + std::to_string(cache.evictions) + " evicted";
  if (cache.bypasses > 0) line += ", no room for " + std::to_string(cache.bypasses);
  line += "\n";
  if (cache.device.capacity_bytes == 0) return line;
  line += tier_line("device", cache.device);
  if (cache.host.capacity_bytes > 0) line += tier_line("host", cache.host);
  return line;
}

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
