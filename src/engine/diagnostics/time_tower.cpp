// Timing the tower alone: prepared random pixels in, rows left on the device.
#include <algorithm>
#include <random>

#include "core/check.h"
#include "core/stopwatch.h"
#include "engine/engine_impl.h"
#include "fovea/diagnostics.h"
#include "graph/forward_cost.h"
#include "graph/sized_forward.h"
#include "models/load_model.h"

namespace fovea {

namespace {

/// A picture that the processor leaves as it is and that has exactly `patches` patches, as nearly
/// square as possible.
ItemPlan plan_for_patches(const EncoderGraphModel& model, std::int64_t patches) {
  std::optional<ItemPlan> best;
  for (const std::int64_t patch_px : {14, 16}) {  // patch sizes of the supported families
    for (std::int64_t rows = 1; rows * rows <= patches; ++rows) {
      if (patches % rows != 0 || patches / rows > 200 * rows) continue;
      const ItemPlan plan =
          model.processor().plan_image(patches / rows * patch_px, rows * patch_px);
      const bool unchanged = plan.resized_width_px == plan.source_width_px &&
                             plan.resized_height_px == plan.source_height_px;
      if (unchanged && plan.spec.input_rows == patches) best = plan;
    }
  }
  FOVEA_CHECK(best.has_value(), kInvalidArgument, "no picture has exactly ", patches,
              " patches for this model");
  return *best;
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
                       int repetitions) {
  FOVEA_CHECK(patches >= 1 && count >= 1 && warmups >= 0 && repetitions >= 1, kInvalidArgument,
              "time_tower: patches, count and repetitions must be positive");
  Engine::Impl& impl = *engine.impl_;
  const std::lock_guard lock(impl.mutex);
  MediaOptions any_size = impl.options.media;
  any_size.min_pixels = 1;
  const auto planner = plan_model(impl.files, any_size);
  const ItemPlan plan = plan_for_patches(*planner, patches);
  const std::vector<PreparedItem> storage = random_items(plan, count);
  std::vector<const PreparedItem*> items;
  for (const PreparedItem& item : storage) items.push_back(&item);

  impl.replicas->for_each([](Replica& replica) { replica.graphs().wait_for_background(); });
  TowerTiming timing;
  timing.patches = patches * count;
  timing.rows = plan.spec.out_rows * count;
  const std::span<const PreparedItem* const> one = std::span(items).first(1);
  for (PathId path = 0; path < static_cast<PathId>(impl.model().graph_spec().paths.size());
       ++path) {
    timing.flops +=
        static_cast<double>(count) * measure_forward(impl.model(), *impl.backends.front().device,
                                                     path, exact_capacity(path, one))
                                         .flops;
  }
  const auto run_ms = [&](bool eager) {
    const Stopwatch watch;
    impl.replicas->run(items, {.enforce_eager = eager});
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
}

}  // namespace fovea
