// Tables and JSON of `fovea bench latency`.
#include "bench/latency_report.h"

#include <algorithm>

#include "bench/samples.h"
#include "report/table.h"
#include "report/text.h"

namespace fovea::cli {
namespace {

std::string case_text(const TowerLoad& load) {
  if (!load.sizes.empty()) return counted(std::ssize(load.sizes), "size");
  const std::string items = std::to_string(load.count) + " x " + std::to_string(load.patches);
  return load.num_frames == 0 ? items : items + " x " + std::to_string(load.num_frames) + "f";
}

/// @param m with energy.
JsonObject energy_json(const Measurement& m) {
  return {{"runs", m.energy->runs},
          {"mean_ms", m.energy->run_ms},
          {"watts", m.energy->watts},
          {"joules", m.energy->joules()},
          {"joules_per_item", m.joules_per_item()},
          {"joules_per_row", m.joules_per_row()},
          {"uncertainty", m.energy->uncertainty}};
}

}  // namespace

double Measurement::best_ms() const {
  const double eager = percentile(timing.eager_ms, 50);
  return timing.replay_ms.empty() ? eager : std::min(eager, percentile(timing.replay_ms, 50));
}

double Measurement::joules_per_item() const {
  return energy->joules() / static_cast<double>(timing.items);
}

double Measurement::joules_per_row() const {
  return energy->joules() / static_cast<double>(timing.rows);
}

std::string threads_text(std::int64_t threads) {
  return threads == 0 ? "all threads" : counted(threads, "thread");
}

std::string timing_table(std::span<const Measurement> measurements) {
  Table table({{"threads"},
               {"patches"},
               {"rows"},
               {"budget"},
               {"eager p50"},
               {"eager p90"},
               {"eager p99"},
               {"replay p50"},
               {"replay p90"},
               {"replay p99"},
               {"GFLOP/s"},
               {"of peak"}});
  for (const Measurement& m : measurements) {
    const Summary eager = summarize(m.timing.eager_ms);
    const Summary replay = summarize(m.timing.replay_ms);
    const auto replay_ms = [&](double value) {
      return m.timing.replay_ms.empty() ? std::string("-") : fixed(value, 2);
    };
    table.add_row(
        {m.threads == 0 ? "all" : std::to_string(m.threads), case_text(m.load),
         std::to_string(m.timing.rows), m.timing.budget > 0 ? std::to_string(m.timing.budget) : "-",
         fixed(eager.median, 2), fixed(eager.p90, 2), fixed(eager.p99, 2), replay_ms(replay.median),
         replay_ms(replay.p90), replay_ms(replay.p99), fixed(m.gflops(), 1),
         m.peak_gflops ? percent(m.gflops() / *m.peak_gflops) : "-"});
  }
  return table.text();
}

std::string energy_table(std::span<const Measurement> measurements) {
  Table table(
      {{"patches"}, {"rows"}, {"runs"}, {"mean ms"}, {"W"}, {"J"}, {"J/item"}, {"mJ/row"}, {"+-"}});
  bool is_empty = true;
  for (const Measurement& m : measurements) {
    if (!m.energy) continue;
    is_empty = false;
    table.add_row({case_text(m.load), std::to_string(m.timing.rows), std::to_string(m.energy->runs),
                   fixed(m.energy->run_ms, 2), fixed(m.energy->watts, 0),
                   fixed(m.energy->joules(), 3), fixed(m.joules_per_item(), 3),
                   fixed(1e3 * m.joules_per_row(), 3), percent(m.energy->uncertainty)});
  }
  return is_empty ? "" : table.text();
}

std::string scaling_table(std::span<const Measurement> measurements,
                          std::span<const std::int64_t> threads) {
  std::vector<Table::Column> columns{{"patches"}};
  for (const std::int64_t n : threads) columns.push_back({threads_text(n)});
  Table table(columns);
  const std::size_t sizes = measurements.size() / threads.size();
  for (std::size_t size = 0; size < sizes; ++size) {
    const Measurement& first = measurements[size];
    std::vector<std::string> cells{case_text(first.load)};
    for (std::size_t t = 0; t < threads.size(); ++t) {
      const Measurement& m = measurements[t * sizes + size];
      cells.push_back(fixed(first.best_ms() / m.best_ms(), 2) + "x");
    }
    table.add_row(std::move(cells));
  }
  return table.text();
}

JsonArray results_json(std::span<const Measurement> measurements) {
  JsonArray results;
  for (const Measurement& m : measurements) {
    JsonObject entry{{"threads", m.threads},
                     {"count", m.timing.items},
                     {"patches", m.load.sizes.empty() ? m.load.patches : m.timing.patches},
                     {"frames", m.load.num_frames},
                     {"rows", m.timing.rows},
                     {"token_budget", m.timing.budget},
                     {"flops", m.timing.flops},
                     {"eager_ms", to_json(summarize(m.timing.eager_ms))}};
    std::optional<JsonObject> replay_ms;
    if (!m.timing.replay_ms.empty()) replay_ms = to_json(summarize(m.timing.replay_ms));
    std::optional<JsonObject> energy;
    if (m.energy) energy = energy_json(m);
    entry.set("replay_ms", replay_ms)
        .set("gflops_per_s", m.gflops())
        .set("peak_gflops_per_s", m.peak_gflops)
        .set("energy", energy);
    results.add(entry);
  }
  return results;
}

}  // namespace fovea::cli
