// Planning without weights: sizes, grids, and which items would share which budget.
#include <optional>
#include <utility>
#include <vector>

#include "core/check.h"
#include "engine/engine_impl.h"
#include "engine/load_balance.h"
#include "engine/prepare.h"
#include "engine/video_pruning.h"
#include "graph/capture/graph_set.h"
#include "graph/graph_config.h"
#include "graph/packing.h"
#include "media/limits.h"
#include "models/load_model.h"

namespace fovea {

namespace {

/// "640x480", or "640x480x8f" for a video.
std::string size_name(std::int64_t width_px, std::int64_t height_px,
                      std::optional<std::int64_t> num_frames) {
  const std::string image = cat(width_px, "x", height_px);
  return num_frames ? cat(image, "x", *num_frames, "f") : image;
}

ItemPlan plan_item(const ItemProcessor& processor, const ItemSize& size,
                   const MediaLimits& limits) {
  const bool is_video = size.modality == Modality::kVideo || size.num_frames != 1;
  const std::string name = size_name(size.width_px, size.height_px,
                                     is_video ? std::optional(size.num_frames) : std::nullopt);
  media::check_image_size(size.width_px, size.height_px, name, limits);
  media::check_num_frames(size.num_frames, name, limits);
  return is_video ? processor.plan_video(size.num_frames, size.width_px, size.height_px)
                  : processor.plan_image(size.width_px, size.height_px);
}

ItemInfo describe(const ItemPlan& plan, double video_pruning_rate) {
  ItemInfo info;
  const bool is_video = plan.modality == Modality::kVideo;
  info.name = size_name(plan.source_width_px, plan.source_height_px,
                        is_video ? std::optional(plan.num_frames) : std::nullopt);
  info.modality = plan.modality;
  info.source_width_px = plan.source_width_px;
  info.source_height_px = plan.source_height_px;
  info.num_frames = plan.num_frames;
  info.resized_width_px = plan.resized_width_px;
  info.resized_height_px = plan.resized_height_px;
  if (plan.has_grid_thw) info.grid_thw = plan.grid;
  info.patches = plan.spec.input_rows;
  info.rows = is_video && video_pruning_rate > 0
                  ? num_retained(plan.spec.out_rows, plan.grid[0], video_pruning_rate)
                  : plan.spec.out_rows;
  return info;
}

/// Adds the windows of a call to a plan, one after the other.
class Planner {
 public:
  Planner(const EncoderGraphModel& model, const EngineOptions& options)
      : spec_(model.graph_spec()),
        options_(options),
        config_(graph_config_of(model, options.max_num_batched_tokens,
                                {.user = options.graphs,
                                 .video_allowed = options.video_pruning_rate == 0,
                                 .log = options.log})) {
    for (const PathSpec& path : spec_.paths) plan_.paths.push_back(path.name);
    plan_.token_budgets.resize(plan_.paths.size());
    plan_.replica_patches.resize(replica_devices(options).size());
    if (!graphs()) return;
    plan_.token_budgets = config_.path_budgets;
    plan_.max_items_per_batch = config_.max_items;
  }

  /// Adds what the replicas make of the items [begin, begin + count) of `items`.
  void add_window(std::span<const ItemPlan> items, std::size_t begin, std::size_t count) {
    std::vector<ItemSpec> specs;
    for (const ItemPlan& item : items.subspan(begin, count)) {
      specs.push_back(item.spec);
      plan_.items.push_back(describe(item, options_.video_pruning_rate));
    }
    const Assignment assignment = assign_items(spec_, specs, plan_.replica_patches.size());
    for (std::size_t replica = 0; replica < assignment.counts.size(); ++replica) {
      std::vector<std::size_t> replayed;
      std::vector<std::size_t> eager;
      for (const std::size_t index : assignment.items(replica)) {
        const ItemPlan& item = items[begin + index];
        plan_.replica_patches[replica] += item.spec.input_rows;
        const bool served = graphs() && serves(spec_, config_, item.modality);
        (served ? replayed : eager).push_back(begin + index);
      }
      add_batches(items, replayed, replica, true);
      add_batches(items, eager, replica, false);
    }
  }

  [[nodiscard]] PackingPlan take() { return std::move(plan_); }

 private:
  [[nodiscard]] bool graphs() const { return options_.graphs.cudagraph_mm_encoder; }

  /// Adds the sub-batches that a replica makes of `selection`, indices into `items`.
  /// @param replayed false: budgets only bound the size of eager runs, and are not reported.
  void add_batches(std::span<const ItemPlan> items, std::span<const std::size_t> selection,
                   std::size_t replica, bool replayed) {
    std::vector<ItemSpec> specs;
    for (const std::size_t item : selection) specs.push_back(items[item].spec);
    const Packing packing = plan_packing(config_, specs, options_.packing, replayed);
    for (const SubBatch& batch : packing.batches) {
      PlannedBatch& planned = plan_.batches.emplace_back();
      planned.replica = static_cast<std::int64_t>(replica);
      for (const std::int64_t item : packing.items(batch)) {
        planned.items.push_back(
            static_cast<std::int64_t>(selection[static_cast<std::size_t>(item)]));
      }
      for (std::size_t path = 0; path < plan_.paths.size(); ++path) {
        add_path(batch, static_cast<PathId>(path), replayed, planned);
      }
    }
  }

  /// Adds what one path of a sub-batch does.
  void add_path(const SubBatch& batch, PathId path, bool replayed, PlannedBatch& planned) const {
    const std::int64_t tokens = batch.load[static_cast<std::size_t>(path)];
    std::optional<std::int64_t> budget = batch.budgets[static_cast<std::size_t>(path)];
    if (batch.too_many_seqs || (!replayed && tokens > 0)) budget.reset();
    planned.tokens.push_back(tokens);
    planned.budgets.push_back(budget);
    const bool has_graph = budget.value_or(0) > 0;
    planned.padded.push_back(
        has_graph ? graph_capacity(spec_, config_, {path, *budget}).tokens - tokens : 0);
  }

  const GraphSpec& spec_;
  const EngineOptions& options_;
  const GraphConfig config_;
  PackingPlan plan_;
};

PackingPlan plan_items(const EncoderGraphModel& model, std::span<const ItemSize> sizes,
                       const EngineOptions& options, bool on_host) {
  std::vector<ItemPlan> items;
  for (const ItemSize& size : sizes) {
    items.push_back(plan_item(model.processor(), size, options.media.limits));
  }
  Planner planner(model, options);
  const std::size_t num_replicas = replica_devices(options).size();
  for (std::size_t begin = 0, count = 0; begin < items.size(); begin += count) {
    count = window_items(on_host, num_replicas, begin, items.size());
    planner.add_window(items, begin, count);
  }
  return planner.take();
}

}  // namespace

PackingPlan Engine::plan(std::span<const ItemSize> sizes) const {
  return plan_items(impl_->model(), sizes, impl_->options, impl_->on_host());
}

PackingPlan plan(const std::string& model, std::span<const ItemSize> sizes,
                 const EngineOptions& options) {
  const checkpoint::HfConfig files = checkpoint::read_hf_config(model);
  check_video_pruning(files.architecture(), options.video_pruning_rate);
  const auto planner = plan_model(files, options.media);
  warn_of_assumptions(planner->processor(), options);
  const bool on_host = !replica_devices(options).front().starts_with("cuda");
  return plan_items(*planner, sizes, options, on_host);
}

}  // namespace fovea
