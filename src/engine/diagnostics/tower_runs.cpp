// The tower alone: prepared random pixels in, rows left on the device.
#include "engine/diagnostics/tower_runs.h"

#include <algorithm>
#include <cstring>
#include <random>
#include <string>

#include "core/check.h"
#include "core/stopwatch.h"
#include "engine/call_plan.h"
#include "engine/family_options.h"
#include "engine/planned_item.h"
#include "graph/capture/forward_cost.h"
#include "graph/capture/image_search.h"
#include "graph/sized_forward.h"
#include "models/load_model.h"

namespace fovea {

namespace {

/// Of all items together. Their pixels take some 20 GB.
constexpr std::int64_t kMaxPatches = std::int64_t{1} << 24;

void check(const TowerLoad& load, std::string_view who) {
  if (!load.sizes.empty()) return;
  FOVEA_CHECK(load.patches >= 1 && load.count >= 1, kInvalidArgument, who,
              ": patches and count must be positive, got ", load.patches, " and ", load.count);
  FOVEA_CHECK(load.num_frames >= 0, kInvalidArgument, who, ": a video cannot have ",
              load.num_frames, " frames");
  const std::int64_t grids =
      std::max<std::int64_t>(load.num_frames, 1);  // two frames may share one
  const std::optional<std::int64_t> all = checked_mul(load.patches, load.count);
  const std::optional<std::int64_t> most = all ? checked_mul(*all, grids) : all;
  FOVEA_CHECK(
      most && *most <= kMaxPatches, kInvalidArgument, who, ": ", load.count,
      load.num_frames == 0 ? " images of " : cat(" videos of ", load.num_frames, " frames of "),
      load.patches, " patches are more than ", kMaxPatches, " patches");
}

/// An image, or a video each of whose temporal patches, has exactly so many patches.
ItemPlan plan_of(const EncoderGraphModel& model, const TowerLoad& load) {
  const auto count = [](const ItemPlan& plan) {
    return plan.modality == Modality::kImage ? plan.spec.input_rows : plan.spec.units_on(0).patches;
  };
  const NearestImages found = find_images(model, load.patches, count, load.num_frames);
  if (found.up_to && count(*found.up_to) == load.patches) return *found.up_to;
  std::string nearest;
  for (const std::optional<ItemPlan>& plan : {found.up_to, found.above}) {
    if (plan) nearest += cat(nearest.empty() ? "" : " and ", count(*plan));
  }
  FOVEA_CHECK(false, kInvalidArgument, "no ", load.num_frames == 0 ? "image" : "temporal patch",
              " of this model has exactly ", load.patches, " patches; the nearest have ",
              nearest.empty() ? "none" : nearest);
}

std::vector<ItemPlan> plans_of(const EncoderGraphModel& model, const TowerLoad& load,
                               const MediaLimits& limits) {
  if (load.sizes.empty()) return {static_cast<std::size_t>(load.count), plan_of(model, load)};
  std::vector<ItemPlan> plans;
  for (const ItemSize& size : load.sizes) {
    plans.push_back(plan_item(model.processor(), size, limits));
  }
  return plans;
}

/// Items of random bytes.
std::vector<PreparedItem> random_items(std::span<const ItemPlan> plans, bool equal_frames) {
  std::mt19937_64 random(0);
  std::vector<PreparedItem> items;
  items.reserve(plans.size());
  for (const ItemPlan& plan : plans) {
    PreparedItem& item = items.emplace_back(PreparedItem{.plan = plan});
    item.pixels.resize(plan.pixel_bytes);
    const bool has_equal = equal_frames && plan.unit_bytes[0] > 0;
    const std::size_t drawn = has_equal ? plan.unit_bytes[0] : plan.pixel_bytes;
    for (std::size_t i = 0; i < drawn; i += sizeof(std::uint64_t)) {
      const std::uint64_t bytes = random();
      std::memcpy(item.pixels.data() + i, &bytes, std::min(sizeof(bytes), drawn - i));
    }
    for (std::size_t i = drawn; i < plan.pixel_bytes; ++i) item.pixels[i] = item.pixels[i - drawn];
  }
  return items;
}

/// Of one item on all paths that it takes. Units do not attend to each other.
double flops_of(const EncoderGraphModel& model, const Device& device, const PreparedItem& item) {
  double flops = 0;
  for (PathId path = 0; std::cmp_less(path, model.graph_spec().paths.size()); ++path) {
    const std::int64_t units = item.plan.spec.units_on(path).count;
    const ItemPart unit{.item = &item, .path = path, .count = 1};
    flops += static_cast<double>(units) *
             measure_forward(model, device, path, exact_capacity({&unit, 1})).flops;
  }
  return flops;
}

}  // namespace

TowerRuns::TowerRuns(Engine& engine, const TowerLoad& load, std::string_view who)
    : impl_(*engine.impl_), session_(impl_.sessions.take()) {
  check(load, who);
  MediaOptions media = impl_.options.media;
  if (load.sizes.empty()) media.min_pixels = 1;  // any number of patches
  const auto planner = plan_model(impl_.files, media, tower_output(impl_.options));
  storage_ = random_items(plans_of(*planner, load, impl_.options.media.limits), load.equal_frames);
  for (const PreparedItem& item : storage_) items_.push_back({.prepared = &item});
  FOVEA_CHECK(patches() <= kMaxPatches, kInvalidArgument, who, ": the items have ", patches(),
              " patches, more than ", kMaxPatches);
  impl_.replicas->for_each([](Replica& replica) { replica.graphs().wait_for_background(); });
}

std::int64_t TowerRuns::patches() const noexcept {
  std::int64_t patches = 0;
  for (const PreparedItem& item : storage_) patches += item.plan.spec.input_rows;
  return patches;
}

std::int64_t TowerRuns::rows() const noexcept {
  std::int64_t rows = 0;
  for (const PreparedItem& item : storage_) rows += item.plan.spec.out_rows;
  return rows;
}

double TowerRuns::flops() const {
  double flops = 0;
  for (const PreparedItem& item : storage_) {
    flops += flops_of(impl_.model(), *impl_.backends.front().device, item);
  }
  return flops;
}

std::int64_t TowerRuns::largest_budget() const {
  std::vector<std::optional<ItemPlan>> plans;
  for (const PreparedItem& item : storage_) plans.emplace_back(item.plan);
  std::int64_t largest = 0;
  for (const std::vector<CallBatch>& batches : pack_call(impl_.call_limits(false), plans)) {
    for (const CallBatch& batch : batches) {
      for (const std::optional<std::int64_t>& budget : batch.sizes.budgets) {
        largest = std::max(largest, budget.value_or(0));
      }
    }
  }
  return largest;
}

double TowerRuns::run_ms(bool eager) {
  const Stopwatch watch;
  session_->begin(items_, {.enforce_eager = eager});
  return watch.elapsed_ms();
}

std::int64_t TowerRuns::num_replayed() const { return sum(impl_.replicas->stats()).graph_hits; }

}  // namespace fovea
