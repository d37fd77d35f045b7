// Table and JSON of `fovea bench serve`.
#include "bench/serve/load.h"

#include "bench/samples.h"
#include "report/table.h"
#include "report/text.h"

namespace fovea::cli {
namespace {

double delay_ms(const ServeResult& result) {
  return static_cast<double>(result.delay_us.value_or(0)) / 1e3;
}

/// Items of a batch, on average; 0 without batches.
double batch_items(const ServeResult& result) {
  const BatcherStats& stats = result.run.stats;
  return stats.batches == 0
             ? 0
             : static_cast<double>(stats.batch_items) / static_cast<double>(stats.batches);
}

}  // namespace

std::string serve_table(std::span<const ServeResult> results) {
  Table table({{"way", Table::Align::kLeft},
               {"delay ms"},
               {"items/s"},
               {"of one call"},
               {"p50 ms"},
               {"p90 ms"},
               {"p99 ms"},
               {"items/batch"},
               {"refused"}});
  for (const ServeResult& result : results) {
    const Summary latency = summarize(result.run.latency_ms);
    const double share = result.run.per_second() / results.front().run.per_second();
    table.add_row({result.way, result.delay_us ? fixed(delay_ms(result), 2) : "",
                   fixed(result.run.per_second(), 1), fixed(share, 2), fixed(latency.median, 2),
                   fixed(latency.p90, 2), fixed(latency.p99, 2),
                   result.delay_us ? fixed(batch_items(result), 1) : "",
                   result.delay_us ? std::to_string(result.run.refused) : ""});
  }
  return table.text();
}

JsonArray serve_json(std::span<const ServeResult> results) {
  JsonArray list;
  for (const ServeResult& result : results) {
    JsonObject one{{"way", result.way},
                   {"items_per_s", result.run.per_second()},
                   {"seconds", result.run.seconds},
                   {"latency_ms", to_json(summarize(result.run.latency_ms))}};
    if (result.delay_us) {
      const BatcherStats& stats = result.run.stats;
      one.set("delay_us", *result.delay_us);
      one.set("refused", result.run.refused);
      one.set("batches", stats.batches);
      one.set("batch_items", batch_items(result));
      one.set("batch_rows", stats.batch_rows);
      one.set("queue_seconds", stats.queue_seconds);
    }
    list.add(one);
  }
  return list;
}

}  // namespace fovea::cli
