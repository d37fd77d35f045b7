// JSON forms of the public structs. Keys are field names.
#include "report/report_json.h"

#include <algorithm>
#include <functional>
#include <numeric>

namespace fovea::cli {
namespace {

double total_ms(const StageTimes& times) {
  return std::accumulate(kStages.begin(), kStages.end(), 0.0,
                         [&](double sum, const Stage& stage) { return sum + times.*stage.ms; });
}

JsonObject to_json(const PathStats& path) {
  return {{"name", path.name},
          {"token_budgets", path.token_budgets},
          {"replays", path.replays},
          {"replayed_items", path.replayed_items},
          {"eager_runs", path.eager_runs},
          {"live_rows", path.live_rows},
          {"padded_rows", path.padded_rows}};
}

JsonObject to_json(const GraphReport& graph) {
  return {{"path", graph.path},
          {"budget", graph.budget},
          {"capture_ms", graph.capture_ms},
          {"recording_bytes", graph.recording_bytes},
          {"shared_bytes", graph.shared_bytes},
          {"replay_ms", graph.replay_ms},
          {"eager_ms", graph.eager_ms},
          {"stored_times", graph.stored_times}};
}

JsonObject to_json(const CacheTierStats& tier) {
  return {{"capacity_bytes", tier.capacity_bytes},
          {"bytes", tier.bytes},
          {"items", tier.items},
          {"hits", tier.hits},
          {"misses", tier.misses},
          {"evictions", tier.evictions}};
}

JsonObject to_json(const SharedRowsStats& shared) {
  return {{"is_asked", shared.is_asked}, {"hits", shared.hits},
          {"misses", shared.misses},     {"skipped", shared.skipped},
          {"stored", shared.stored},     {"not_stored", shared.not_stored}};
}

JsonObject to_json(const EncoderCacheStats& cache) {
  JsonObject json{{"capacity_bytes", cache.capacity_bytes},
                  {"bytes", cache.bytes},
                  {"freeable_bytes", cache.freeable_bytes},
                  {"rows", cache.rows},
                  {"items", cache.items},
                  {"queries", cache.queries},
                  {"hits", cache.hits},
                  {"joins", cache.joins},
                  {"misses", cache.misses},
                  {"bypasses", cache.bypasses},
                  {"evictions", cache.evictions},
                  {"hit_rate", cache.hit_rate()},
                  {"device", to_json(cache.device)},
                  {"host", to_json(cache.host)}};
  if (cache.shared) json.set("shared", to_json(*cache.shared));
  return json;
}

JsonObject to_json(const ItemInfo& item) {
  return {{"modality", to_string(item.modality)},
          {"source_width_px", item.source_width_px},
          {"source_height_px", item.source_height_px},
          {"num_frames", item.num_frames},
          {"resized_width_px", item.resized_width_px},
          {"resized_height_px", item.resized_height_px},
          {"grid_thw", item.grid_thw},
          {"patches", item.patches},
          {"rows", item.rows}};
}

JsonObject to_json(const PlannedBatch& batch) {
  JsonObject json{{"replica", batch.replica},
                  {"items", batch.items},
                  {"tokens", batch.tokens},
                  {"budgets", batch.budgets}};
  if (batch.units.empty()) return json;
  std::vector<std::vector<std::int64_t>> units;
  for (const UnitRange& range : batch.units) units.push_back({range.first, range.count});
  json.set("units", units);
  return json;
}

JsonObject to_json(const TensorReport& tensor) {
  return {{"name", tensor.name},
          {"dtype", tensor.dtype},
          {"shape", tensor.shape},
          {"problem", tensor.problem}};
}

template <class T>
JsonArray list_of(const std::vector<T>& values) {
  JsonArray list;
  for (const T& value : values) list.add(to_json(value));
  return list;
}

}  // namespace

JsonObject to_json(const Stats& stats) {
  JsonObject json = {
      {"graph_hits", stats.graph_hits},       {"graph_partial", stats.graph_partial},
      {"graph_misses", stats.graph_misses},   {"skipped", stats.skipped},
      {"hit_rate", stats.hit_rate()},         {"num_budgets", stats.num_budgets},
      {"token_budgets", stats.token_budgets}, {"sub_batches", stats.sub_batches},
      {"units_reused", stats.units_reused},   {"miss_reasons", stats.miss_reasons},
      {"paths", list_of(stats.paths)},        {"capture_seconds", stats.capture_seconds},
      {"graph_bytes", stats.graph_bytes},     {"graphs", list_of(stats.graphs)}};
  if (stats.encoder_cache.capacity_bytes > 0)
    json.set("encoder_cache", to_json(stats.encoder_cache));
  if (stats.energy_joules) json.set("energy_joules", *stats.energy_joules);
  return json;
}

JsonObject to_json(const ReplicaStats& replica) {
  return JsonObject{{"device", replica.device}}.merge(to_json(replica.stats));
}

JsonObject to_json(const PackingPlan& plan) {
  JsonObject token_budgets;
  for (std::size_t path = 0; path < plan.paths.size(); ++path) {
    token_budgets.set(plan.paths[path], plan.token_budgets.at(path));
  }
  return {{"items", list_of(plan.items)},
          {"paths", plan.paths},
          {"token_budgets", token_budgets},
          {"max_items_per_batch", plan.max_items_per_batch},
          {"replica_patches", plan.replica_patches},
          {"batches", list_of(plan.batches)}};
}

JsonObject to_json(const ModelReport& report) {
  JsonArray arenas;
  for (const ArenaReport& arena : report.arenas) {
    arenas.add(JsonObject{
        {"path", arena.path}, {"token_budget", arena.token_budget}, {"arena_bytes", arena.bytes}});
  }
  return {{"architecture", report.architecture},
          {"family", report.family},
          {"hidden", report.hidden},
          {"deepstack_levels", report.deepstack_levels},
          {"width", report.width},
          {"images", report.images},
          {"videos", report.videos},
          {"facts", report.facts},
          {"parameters", report.parameters},
          {"weight_bytes", report.weight_bytes},
          {"arenas", arenas},
          {"tensors", list_of(report.tensors)}};
}

JsonArray slowest_items(const std::vector<Embedding>& items) {
  constexpr std::size_t kMost = 60;
  std::vector<const Embedding*> listed;
  for (const Embedding& item : items) {
    if (!item.error) listed.push_back(&item);
  }
  if (listed.size() > kMost) {
    std::ranges::stable_sort(listed, std::greater{},
                             [](const Embedding* item) { return total_ms(item->times); });
    listed.resize(kMost);
  }
  JsonArray json;
  for (const Embedding* item : listed) {
    JsonObject one{{"name", item->name}};
    for (const Stage& stage : kStages) {
      one.set(std::string(stage.name) + "_ms", item->times.*stage.ms);
    }
    json.add(one);
  }
  return json;
}

}  // namespace fovea::cli
