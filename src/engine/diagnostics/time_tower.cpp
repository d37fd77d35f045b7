// Timing the tower alone: prepared random pixels in, rows left on the device.
#include <algorithm>
#include <random>
#include <string>

#include "core/boundary.h"
#include "core/check.h"
#include "core/stopwatch.h"
#include "engine/call_scope.h"
#include "engine/engine_impl.h"
#include "fovea/diagnostics.h"
#include "graph/capture/forward_cost.h"
#include "graph/capture/image_search.h"
#include "graph/sized_forward.h"
#include "models/load_model.h"

namespace fovea {

namespace {

/// Of all images together. Their pixels take some 20 GB.
constexpr std::int64_t kMaxPatches = std::int64_t{1} << 24;

/// An image that has exactly `patches` patches.
ItemPlan plan_for_patches(const EncoderGraphModel& model, std::int64_t patches) {
  const auto count = [](const ItemPlan& plan) { return plan.spec.input_rows; };
  const NearestImages images = find_images(model, patches, count);
  if (images.up_to && count(*images.up_to) == patches) return *images.up_to;
  std::string nearest;
  for (const std::optional<ItemPlan>& image : {images.up_to, images.above}) {
    if (image) nearest += cat(nearest.empty() ? "" : " and ", count(*image));
  }
  FOVEA_CHECK(false, kInvalidArgument, "no image of this model has exactly ", patches,
              " patches; the nearest have ", nearest.empty() ? "none" : nearest);
}

/// `count` equal items of random bytes.
std::vector<PreparedItem> random_items(const ItemPlan& plan, std::int64_t count) {
  std::mt19937 random(0);
  std::vector<PreparedItem> items(static_cast<std::size_t>(count));
  for (PreparedItem& item : items) {
    item.plan = plan;
    item.pixels.resize(plan.pixel_bytes);
    for (std::uint8_t& byte : item.pixels) byte = static_cast<std::uint8_t>(random());
  }
  return items;
}

/// Of one item on all paths that it takes.
double flops_of(const EncoderGraphModel& model, const Device& device, const PreparedItem* item) {
  double flops = 0;
  for (PathId path = 0; std::cmp_less(path, model.graph_spec().paths.size()); ++path) {
    const GraphCapacity exact = exact_capacity(path, {&item, 1});
    if (exact.tokens > 0) flops += measure_forward(model, device, path, exact).flops;
  }
  return flops;
}

/// Of the graphs that these items are packed into.
std::int64_t largest_budget(const GraphManager& graphs, std::span<const PreparedItem* const> items,
                            PackingPolicy policy) {
  std::vector<ItemSpec> specs;
  for (const PreparedItem* item : items) specs.push_back(item->plan.spec);
  std::int64_t largest = 0;
  for (const SubBatch& batch : plan_packing(graphs.config(), specs, policy).batches) {
    for (const std::optional<std::int64_t>& budget : batch.budgets) {
      largest = std::max(largest, budget.value_or(0));
    }
  }
  return largest;
}

}  // namespace

TowerTiming time_tower(Engine& engine, std::int64_t patches, std::int64_t count, int warmups,
                       int repetitions, const CallBounds& bounds) try {
  FOVEA_CHECK(patches >= 1 && count >= 1 && warmups >= 0 && repetitions >= 1, kInvalidArgument,
              "time_tower: patches, count and repetitions must be positive");
  const std::optional<std::int64_t> all = checked_mul(patches, count);
  FOVEA_CHECK(all && *all <= kMaxPatches, kInvalidArgument, "time_tower: ", count, " images of ",
              patches, " patches are more than ", kMaxPatches, " patches");
  Engine::Impl& impl = *engine.impl_;
  const CallScope scope(bounds, "time_tower");
  const auto session = impl.sessions.take();
  MediaOptions any_size = impl.options.media;
  any_size.min_pixels = 1;
  const auto planner = plan_model(impl.files, any_size);
  const ItemPlan plan = plan_for_patches(*planner, patches);
  const std::vector<PreparedItem> storage = random_items(plan, count);
  std::vector<const PreparedItem*> items;
  items.reserve(storage.size());
  for (const PreparedItem& item : storage) items.push_back(&item);

  impl.replicas->for_each([](Replica& replica) { replica.graphs().wait_for_background(); });
  TowerTiming timing;
  timing.patches = *all;
  timing.rows = plan.spec.out_rows * count;
  timing.flops = static_cast<double>(count) *
                 flops_of(impl.model(), *impl.backends.front().device, items.front());
  const auto run_ms = [&](bool eager) {
    const Stopwatch watch;
    session->run(items, {.enforce_eager = eager});
    return watch.elapsed_ms();
  };
  bool all_replayed = true;  // a mix of replays and eager runs is neither
  const auto replay_ms = [&] {
    const std::int64_t hits = sum(impl.replicas->stats()).graph_hits;
    const double ms = run_ms(false);
    all_replayed = all_replayed && sum(impl.replicas->stats()).graph_hits - hits == count;
    return ms;
  };
  for (int i = 0; i < warmups; ++i) {
    (void)run_ms(true);
    (void)replay_ms();
  }
  for (int i = 0; i < repetitions; ++i) {  // in turn, so that drift of the machine hits both
    timing.eager_ms.push_back(run_ms(true));
    timing.replay_ms.push_back(replay_ms());
  }
  if (!all_replayed) {
    timing.replay_ms.clear();
  } else {
    // Equal items are dealt out in turn, so no replica has more of them than the first.
    const std::size_t num_replicas = impl.replicas->size();
    const auto share = std::span(items).first((items.size() + num_replicas - 1) / num_replicas);
    timing.budget = largest_budget((*impl.replicas)[0].graphs(), share, impl.options.packing);
  }
  return timing;
} catch (...) {
  rethrow_as_error();
}

}  // namespace fovea
