// Tables and JSON of `fovea bench mm-processor`: figures (one value per request) times
// statistics (one value per list of samples).
#include "bench/mm_processor/report.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <functional>
#include <utility>

#include "bench/samples.h"
#include "fovea/embedding.h"
#include "report/table.h"
#include "report/text.h"

namespace fovea::cli {
namespace {

using Samples = std::vector<double>;
using FigureOf = std::function<double(const RequestRecord&)>;

/// A time that every request has, in milliseconds.
struct Figure {
  std::string title;  ///< in tables
  std::string key;    ///< in JSON
  FigureOf of;
};

double encoder_forward_ms(const RequestRecord& record) { return record.times.encode_ms; }

/// The stages in order; together they are the work of a request. That of the tower is called as the
/// reference calls it.
std::vector<Figure> stage_figures() {
  std::vector<Figure> figures;
  for (const Stage& stage : kStages) {
    const bool tower = stage.ms == &StageTimes::encode_ms;
    figures.push_back({tower ? "encoder forward" : std::string(stage.name),
                       tower ? "encoder_forward_ms" : std::string(stage.name) + "_ms",
                       [ms = stage.ms](const RequestRecord& record) { return record.times.*ms; }});
  }
  return figures;
}

Figure end_to_end() {
  return {"end to end", "e2e_ms", [](const RequestRecord& record) { return record.e2e_ms; }};
}

double preprocessing_ms(const RequestRecord& record) {
  return record.times.read_ms + record.times.decode_ms + record.times.resize_ms;
}

Samples samples_of(const WorkloadRun& run, const FigureOf& figure) {
  Samples samples;
  for (const RequestRecord& record : run.completed) samples.push_back(figure(record));
  return samples;
}

Samples encoder_calls_of(const WorkloadRun& run) {
  Samples samples;
  for (const RequestRecord& record : run.completed) {
    if (record.encoder_calls) samples.push_back(static_cast<double>(*record.encoder_calls));
  }
  return samples;
}

struct Statistic {
  std::string title;  ///< in tables
  std::string key;    ///< in JSON
  std::function<double(const Samples&)> of;
};

std::vector<Statistic> statistics_of(std::span<const double> percents) {
  std::vector<Statistic> all{
      {"mean", "mean", [](const Samples& samples) { return summarize(samples).mean; }},
      {"median", "median", [](const Samples& samples) { return percentile(samples, 50); }},
      {"std", "std", [](const Samples& samples) { return population_std(samples); }}};
  for (const double percent : percents) {
    const std::string key = percentile_key(percent);
    all.push_back({key.ends_with(".0") ? key.substr(0, key.size() - 2) : key, key,
                   [percent](const Samples& samples) { return percentile(samples, percent); }});
  }
  return all;
}

// --- tables ---

std::string table_of_one(const WorkloadRun& run, const std::vector<Statistic>& statistics) {
  std::vector<Table::Column> columns{{"stage, ms", Table::Align::kLeft}};
  for (const Statistic& statistic : statistics) columns.push_back({statistic.title});
  Table table(columns);
  const auto add = [&](const Figure& figure) {
    const Samples samples = samples_of(run, figure.of);
    std::vector<std::string> cells{figure.title};
    for (const Statistic& statistic : statistics) cells.push_back(fixed(statistic.of(samples), 3));
    table.add_row(std::move(cells));
  };
  for (const Figure& figure : stage_figures()) add(figure);
  table.add_rule();
  add(end_to_end());
  return table.text();
}

/// "1.25x": how much longer a takes than b; "-" where one of them did not happen.
std::string ratio_text(double a, double b) { return a > 0 && b > 0 ? fixed(a / b, 2) + "x" : "-"; }

std::string table_of_two(const WorkloadRun& a, const WorkloadRun& b,
                         const std::vector<Statistic>& statistics) {
  std::vector<Table::Column> columns{{"stage, ms", Table::Align::kLeft}};
  for (const Statistic& statistic : statistics) {
    for (const TowerMode mode : {a.mode, b.mode}) {
      columns.push_back({std::string(to_string(mode)) + " " + statistic.title});
    }
    columns.push_back({"ratio"});
  }
  Table table(columns);
  const auto add = [&](const Figure& figure) {
    const Samples samples_a = samples_of(a, figure.of);
    const Samples samples_b = samples_of(b, figure.of);
    std::vector<std::string> cells{figure.title};
    for (const Statistic& statistic : statistics) {
      const double value_a = statistic.of(samples_a);
      const double value_b = statistic.of(samples_b);
      cells.insert(cells.end(),
                   {fixed(value_a, 3), fixed(value_b, 3), ratio_text(value_a, value_b)});
    }
    table.add_row(std::move(cells));
  };
  for (const Figure& figure : stage_figures()) add(figure);
  table.add_rule();
  add(end_to_end());
  return table.text();
}

// --- totals ---

struct Totals {
  std::int64_t items = 0;
  std::int64_t rows = 0;
  double items_per_s = 0;
  double rows_per_s = 0;
};

Totals totals_of(const WorkloadRun& run) {
  Totals totals;
  for (const RequestRecord& record : run.completed) {
    totals.items += record.items;
    totals.rows += record.rows;
  }
  if (run.seconds > 0) {
    totals.items_per_s = static_cast<double>(totals.items) / run.seconds;
    totals.rows_per_s = static_cast<double>(totals.rows) / run.seconds;
  }
  return totals;
}

// --- JSON ---

JsonObject json_of(const Samples& samples, const std::vector<Statistic>& statistics) {
  JsonObject json;
  for (const Statistic& statistic : statistics) json.set(statistic.key, statistic.of(samples));
  return json;
}

/// Adds what `vllm bench mm-processor` writes as well, under its names; times in milliseconds.
JsonObject reference_json(const WorkloadRun& run, std::span<const double> percents) {
  const std::vector<Statistic> statistics = statistics_of(percents);
  const Samples e2e = samples_of(run, end_to_end().of);
  // Nothing is known of the calls of a request where several were served side by side.
  const Samples known_calls = encoder_calls_of(run);
  std::optional<JsonObject> calls;
  std::optional<std::int64_t> requests_with_calls;
  if (known_calls.size() == run.completed.size()) {
    calls = json_of(known_calls, statistics);
    requests_with_calls =
        std::ranges::count_if(known_calls, [](double number) { return number > 0; });
  }
  JsonArray e2e_percentiles;
  for (const double percent : percents) {
    e2e_percentiles.add(JsonArray::of(percent, percentile(e2e, percent)));
  }
  const JsonObject stages = {
      {"preprocessor_total_time", json_of(samples_of(run, preprocessing_ms), statistics)},
      {"encoder_forward_time", json_of(samples_of(run, encoder_forward_ms), statistics)},
      {"num_encoder_calls", calls}};
  const JsonObject summary = {{"total_encoder_calls", run.counts.encoder_calls},
                              {"num_requests_with_encoder_calls", requests_with_calls}};
  return {{"completed", run.completed.size()},   {"failed", run.failures.size()},
          {"mean_e2el_ms", summarize(e2e).mean}, {"median_e2el_ms", percentile(e2e, 50)},
          {"std_e2el_ms", population_std(e2e)},  {"percentiles_e2el_ms", e2e_percentiles},
          {"mm_processor_stats", stages},        {"encoder_summary", summary}};
}

}  // namespace

std::string percentile_key(double percent) {
  std::array<char, 32> text{};
  char* const end = std::to_chars(text.data(), text.data() + text.size(), percent).ptr;
  std::string number(text.data(), end);
  if (number.find_first_of(".e") == std::string::npos) number += ".0";
  return "p" + number;
}

std::string stage_table(std::span<const WorkloadRun> runs, std::span<const double> percents) {
  const bool compared = runs.size() > 1;
  std::vector<Statistic> statistics = statistics_of(percents);
  std::erase_if(statistics, [&](const Statistic& statistic) {
    return statistic.key == "p50.0" || (compared && statistic.key == "std");  // the median is there
  });
  return compared ? table_of_two(runs[0], runs[1], statistics) : table_of_one(runs[0], statistics);
}

std::string rates_table(std::span<const WorkloadRun> runs) {
  Table table({{"mode", Table::Align::kLeft},
               {"requests"},
               {"failed"},
               {"items"},
               {"rows"},
               {"items/s"},
               {"rows/s"},
               {"encoder calls"},
               {"replayed"},
               {"padding"}});
  for (const WorkloadRun& run : runs) {
    const Totals totals = totals_of(run);
    table.add_row({to_string(run.mode), std::to_string(run.completed.size()),
                   std::to_string(run.failures.size()), std::to_string(totals.items),
                   std::to_string(totals.rows), fixed(totals.items_per_s, 1),
                   fixed(totals.rows_per_s, 1), std::to_string(run.counts.encoder_calls),
                   percent(run.counts.hit_rate()), percent(run.counts.padding())});
  }
  return table.text();
}

JsonObject figures_json(const WorkloadRun& run, std::span<const double> percents) {
  const std::vector<Statistic> statistics = statistics_of(percents);
  std::vector<Figure> figures = stage_figures();
  figures.push_back(end_to_end());
  JsonObject stages;
  for (const Figure& figure : figures) {
    stages.set(figure.key, json_of(samples_of(run, figure.of), statistics));
  }

  const Totals totals = totals_of(run);
  JsonObject json = reference_json(run, percents);
  json.merge({{"mode", to_string(run.mode)},
              {"stages", stages},
              {"items", totals.items},
              {"rows", totals.rows},
              {"seconds", run.seconds},
              {"items_per_s", totals.items_per_s},
              {"rows_per_s", totals.rows_per_s},
              {"hit_rate", run.counts.hit_rate()},
              {"padding", run.counts.padding()},
              {"graph_hits", run.counts.hits},
              {"graph_partial", run.counts.partial},
              {"graph_misses", run.counts.misses},
              {"live_rows", run.counts.live_rows},
              {"padded_rows", run.counts.padded_rows}});
  return json;
}

}  // namespace fovea::cli
