// Every graph under a load that it was captured for.
#include "engine/diagnostics/graph_checks.h"

#include <algorithm>
#include <optional>
#include <random>
#include <utility>

#include "core/check.h"
#include "core/rounding.h"
#include "engine/diagnostics/compare.h"
#include "graph/capture/graph_set.h"
#include "graph/capture/image_search.h"
#include "graph/packing.h"

namespace fovea {

namespace {

const PathSpec& path_of(const EncoderGraphModel& model, const GraphKey& key) {
  return model.graph_spec().paths[static_cast<std::size_t>(key.path)];
}

/// How much of the tokens that are left an image takes: about half or all of them, both up to
/// kTypicalTokens unless the items are too few; the same as each of the others, which are as few as
/// can be; or all, however many.
enum class Part : std::uint8_t { kHalf, kWhole, kEven, kLargest };

std::int64_t part_of(std::int64_t left, std::int64_t places, Part wanted) {
  const std::int64_t even = ceil_div(left, places);
  switch (wanted) {
    case Part::kHalf:
    case Part::kWhole: break;
    case Part::kEven: return even;
    case Part::kLargest: return left;
  }
  if (places == 1) return left;
  return std::min(wanted == Part::kHalf ? ceil_div(left, 2) : left, std::max(kTypicalTokens, even));
}

/// As mixed_load, each image with that part of the tokens that are left.
std::vector<ItemPlan> load_by_parts(const EncoderGraphModel& model, const GraphConfig& config,
                                    const GraphKey& key, std::int64_t tokens, Part wanted) {
  const auto path = static_cast<std::size_t>(key.path);
  const PackingLimits limits = limits_of(config);
  std::int64_t most = limits.max_items;
  if (wanted == Part::kEven) {
    const auto largest = fullest_image(model, key.path, std::min(tokens, kTypicalTokens));
    most = largest ? std::min(most, ceil_div(tokens, largest->spec.path_tokens[path])) : 0;
  }
  std::vector<ItemPlan> plans;
  SubBatch batch;
  while (batch.count < most && batch.load[path] < tokens) {
    const std::int64_t left = tokens - batch.load[path];
    const std::int64_t part = part_of(left, most - batch.count, wanted);
    std::optional<ItemPlan> image = fullest_image(model, key.path, part);
    if (!image) image = fullest_image(model, key.path, left);
    if (!image || !batch.has_room_for(image->spec, limits)) break;
    batch.add(image->spec);
    plans.push_back(*image);
  }
  batch.close(limits);
  if (batch.budgets[path] != key.budget) plans.clear();
  return plans;
}

/// Whether greedy packing runs all of them in the graph of `key`.
bool are_packed_together(const GraphConfig& config, const GraphKey& key,
                         std::span<const ItemPlan> plans) {
  std::vector<ItemSpec> specs;
  for (const ItemPlan& plan : plans) specs.push_back(plan.spec);
  const Packing packing = plan_packing(config, specs, PackingPolicy::kGreedy);
  return packing.batches.size() == 1 &&
         packing.batches[0].budgets[static_cast<std::size_t>(key.path)] == key.budget;
}

/// Items of random bytes.
std::vector<PreparedItem> random_items(std::span<const ItemPlan> plans) {
  std::mt19937 random(7);
  std::vector<PreparedItem> items;
  for (const ItemPlan& plan : plans) {
    PreparedItem& item = items.emplace_back();
    item.plan = plan;
    item.pixels.resize(plan.pixel_bytes);
    for (std::uint8_t& byte : item.pixels) byte = static_cast<std::uint8_t>(random());
  }
  return items;
}

/// Why the load made for a graph did not run in it, from the counters around that run; absent if it
/// did.
std::optional<Check> not_replayed(const std::string& name, const Stats& before, const Stats& after,
                                  std::size_t path, std::int64_t capacity) {
  const PathStats& from = before.paths[path];
  const PathStats& to = after.paths[path];
  const std::int64_t replays = to.replays - from.replays;
  const std::int64_t rows = to.live_rows + to.padded_rows - from.live_rows - from.padded_rows;
  if (replays > 0 && rows == replays * capacity) return std::nullopt;
  if (replays > 0) return Check{name, true, "not replayed: packed into other graphs", true};
  std::string reasons;
  for (const auto& [reason, items] : after.miss_reasons) {
    const auto known = before.miss_reasons.find(reason);
    if (known != before.miss_reasons.end() && known->second == items) continue;
    reasons += cat(reasons.empty() ? "" : ", ", reason);
  }
  return Check{name, false, cat("not replayed: ", reasons)};
}

Check check_graph(Replica& replica, const GraphKey& key, std::int64_t tokens,
                  const std::string& place, double tolerance) {
  const EncoderGraphModel& model = replica.model();
  const GraphConfig& config = replica.graphs().config();
  const std::int64_t capacity = graph_capacity(model.graph_spec(), config, key).tokens;
  const std::vector<PreparedItem> items = random_items(mixed_load(model, config, key, tokens));
  const std::string name = cat("graph ", path_of(model, key).name, " ", key.budget,
                               tokens < capacity ? cat(" up to ", tokens) : "", ", ", items.size(),
                               items.size() == 1 ? " item" : " items", place);
  if (items.empty()) return {name, true, "not replayed: no images load this graph", true};
  const std::vector<GraphKey> captured = replica.graphs().captured_keys();
  if (std::ranges::find(captured, key) == captured.end()) {
    return {name, true, "not captured: no memory", true};
  }
  std::vector<const PreparedItem*> pointers;
  pointers.reserve(items.size());
  for (const PreparedItem& item : items) pointers.push_back(&item);
  const Stats before = replica.graphs().stats();
  const std::vector<Embedding> replayed = encode_on(replica, pointers, {});
  const std::optional<Check> missed = not_replayed(name, before, replica.graphs().stats(),
                                                   static_cast<std::size_t>(key.path), capacity);
  if (missed) return *missed;
  const std::vector<Embedding> eager = encode_on(replica, pointers, {.enforce_eager = true});
  return check_equal(name, compare(replayed, eager), tolerance);
}

}  // namespace

std::vector<ItemPlan> mixed_load(const EncoderGraphModel& model, const GraphConfig& config,
                                 const GraphKey& key, std::int64_t tokens) {
  for (const Part part : {Part::kHalf, Part::kWhole, Part::kEven, Part::kLargest}) {
    std::vector<ItemPlan> plans = load_by_parts(model, config, key, tokens, part);
    if (!plans.empty() && are_packed_together(config, key, plans)) return plans;
  }
  return {};
}

std::vector<Embedding> encode_on(Replica& replica, std::span<const PreparedItem* const> items,
                                 const EncodeOptions& how) {
  std::vector<Embedding> rows(items.size());
  std::vector<TowerItem> sent;
  sent.reserve(rows.size());
  for (std::size_t i = 0; i < rows.size(); ++i) {
    sent.push_back({items[i], {.result = &rows[i], .dtype = how.dtype}});
  }
  ReplicaSession session(replica);
  session.begin(sent, how);
  session.finish();
  return rows;
}

std::vector<Check> check_graphs(Replica& replica, const std::string& place, double tolerance) {
  std::vector<Check> checks;
  const GraphConfig& config = replica.graphs().config();
  if (config.token_budgets.empty()) return checks;  // graphs are off
  const GraphSpec& spec = replica.model().graph_spec();
  for (const GraphKey& key : capture_order(config)) {
    for (const GraphCapacity& size : recorded_sizes(spec, config, key, replica.device())) {
      checks.push_back(check_graph(replica, key, size.tokens, place, tolerance));
    }
  }
  return checks;
}

}  // namespace fovea
