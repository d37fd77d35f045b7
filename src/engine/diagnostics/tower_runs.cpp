// The tower alone: prepared random pixels in, rows left on the device.
#include "engine/diagnostics/tower_runs.h"

#include <algorithm>
#include <random>
#include <string>

#include "core/check.h"
#include "core/stopwatch.h"
#include "graph/capture/forward_cost.h"
#include "graph/capture/image_search.h"
#include "graph/sized_forward.h"
#include "models/load_model.h"

namespace fovea {

namespace {

/// Of all images together. Their pixels take some 20 GB.
constexpr std::int64_t kMaxPatches = std::int64_t{1} << 24;

std::int64_t checked_patches(std::int64_t patches, std::int64_t count, std::string_view who) {
  FOVEA_CHECK(patches >= 1 && count >= 1, kInvalidArgument, who,
              ": patches and count must be positive, got ", patches, " and ", count);
  const std::optional<std::int64_t> all = checked_mul(patches, count);
  FOVEA_CHECK(all && *all <= kMaxPatches, kInvalidArgument, who, ": ", count, " images of ",
              patches, " patches are more than ", kMaxPatches, " patches");
  return *all;
}

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
    if (item->plan.spec.units_on(path).count == 0) continue;
    const ItemPart part = ItemPart::whole(*item, path);
    flops += measure_forward(model, device, path, exact_capacity({&part, 1})).flops;
  }
  return flops;
}

}  // namespace

TowerRuns::TowerRuns(Engine& engine, std::int64_t patches, std::int64_t count, std::string_view who)
    : impl_(*engine.impl_),
      patches_(checked_patches(patches, count, who)),
      session_(impl_.sessions.take()) {
  MediaOptions any_size = impl_.options.media;
  any_size.min_pixels = 1;
  const auto planner = plan_model(impl_.files, any_size);
  storage_ = random_items(plan_for_patches(*planner, patches), count);
  items_.reserve(storage_.size());
  for (const PreparedItem& item : storage_) items_.push_back(&item);
  impl_.replicas->for_each([](Replica& replica) { replica.graphs().wait_for_background(); });
}

std::int64_t TowerRuns::rows() const noexcept {
  return storage_.front().plan.spec.out_rows * std::ssize(storage_);
}

double TowerRuns::flops() const {
  return static_cast<double>(storage_.size()) *
         flops_of(impl_.model(), *impl_.backends.front().device, items_.front());
}

std::int64_t TowerRuns::largest_budget() const {
  // Equal items are dealt out in turn, so no replica has more of them than the first.
  const std::size_t num_replicas = impl_.replicas->size();
  const std::size_t share = (items_.size() + num_replicas - 1) / num_replicas;
  const std::vector<ItemSpec> specs(share, storage_.front().plan.spec);
  const GraphConfig& config = (*impl_.replicas)[0].graphs().config();
  std::int64_t largest = 0;
  for (const SubBatch& batch :
       plan_packing(config, specs, impl_.options.packing, true, !impl_.on_host()).batches) {
    for (const std::optional<std::int64_t>& budget : batch.budgets) {
      largest = std::max(largest, budget.value_or(0));
    }
  }
  return largest;
}

double TowerRuns::run_ms(bool eager) {
  const Stopwatch watch;
  session_->run(items_, {.enforce_eager = eager});
  return watch.elapsed_ms();
}

std::int64_t TowerRuns::num_replayed() const { return sum(impl_.replicas->stats()).graph_hits; }

}  // namespace fovea
