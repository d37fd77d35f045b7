// Planning without weights: sizes, grids, and which items would share which budget.
#include <algorithm>

#include "core/check.h"
#include "engine/engine_impl.h"
#include "engine/load_balance.h"
#include "graph/graph_config.h"
#include "graph/packing.h"
#include "media/limits.h"

namespace fovea {

namespace {

/// "640x480", or "640x480x8f" for a video.
std::string size_name(std::int64_t width_px, std::int64_t height_px, std::int64_t num_frames) {
  const std::string picture = cat(width_px, "x", height_px);
  return num_frames == 1 ? picture : cat(picture, "x", num_frames, "f");
}

ItemPlan plan_item(const EncoderGraphModel& model, const ItemSize& size,
                   const MediaLimits& limits) {
  const std::string name = size_name(size.width_px, size.height_px, size.num_frames);
  media::check_picture_size(size.width_px, size.height_px, name, limits);
  media::check_num_frames(size.num_frames, name, limits);
  return size.num_frames == 1 ? model.plan_image(size.width_px, size.height_px)
                              : model.plan_video(size.num_frames, size.width_px, size.height_px);
}

ItemInfo describe(const ItemPlan& plan) {
  ItemInfo info;
  info.name = size_name(plan.source_width_px, plan.source_height_px, plan.num_frames);
  info.modality = plan.modality;
  info.source_width_px = plan.source_width_px;
  info.source_height_px = plan.source_height_px;
  info.num_frames = plan.num_frames;
  info.resized_width_px = plan.resized_width_px;
  info.resized_height_px = plan.resized_height_px;
  if (plan.has_grid_thw) info.grid_thw = plan.grid;
  info.patches = plan.spec.input_rows;
  info.rows = plan.spec.out_rows;
  return info;
}

GraphConfig resolve(const EncoderGraphModel& model, const EngineOptions& options) {
  const GraphSpec& spec = model.graph_spec();
  if (!options.graphs.cudagraph_mm_encoder) {
    return eager_config(spec, options.max_num_batched_tokens);
  }
  return resolve_graph_config(spec,
                              [&] { return model.budget_range(options.max_num_batched_tokens); },
                              {.user = options.graphs, .log = options.log});
}

/// @param graphs false: budgets only bound the size of eager runs, and are not reported.
PlannedBatch describe(const Packing& packing, const SubBatch& batch, std::size_t num_paths,
                      bool graphs) {
  PlannedBatch planned;
  const std::span<const std::int64_t> items = packing.items(batch);
  planned.items.assign(items.begin(), items.end());
  for (std::size_t path = 0; path < num_paths; ++path) {
    planned.tokens.push_back(batch.load[path]);
    const bool eager = batch.too_many_seqs || (!graphs && batch.load[path] > 0);
    planned.budgets.push_back(eager ? std::nullopt : batch.budgets[path]);
  }
  return planned;
}

/// Which replica takes which item; a single one takes them as they come.
Assignment assign(std::span<const ItemSpec> specs, std::size_t num_replicas) {
  std::vector<std::int64_t> sizes;
  for (const ItemSpec& spec : specs) sizes.push_back(spec.input_rows);
  Assignment assignment = balance_load(sizes, num_replicas);
  if (num_replicas == 1) std::ranges::sort(assignment.order);
  return assignment;
}

/// Adds the sub-batches that a replica makes of `selection`, indices into `items`.
/// @param graphs as in describe().
void add_batches(PackingPlan& plan, const GraphConfig& config, PackingPolicy policy,
                 std::span<const ItemPlan> items, std::span<const std::size_t> selection,
                 std::size_t replica, bool graphs) {
  std::vector<ItemSpec> specs;
  for (const std::size_t item : selection) specs.push_back(items[item].spec);
  const Packing packing = plan_packing(config, specs, policy);
  for (const SubBatch& batch : packing.batches) {
    PlannedBatch planned = describe(packing, batch, plan.paths.size(), graphs);
    planned.replica = static_cast<std::int64_t>(replica);
    for (std::int64_t& item : planned.items) {
      item = static_cast<std::int64_t>(selection[static_cast<std::size_t>(item)]);
    }
    plan.batches.push_back(std::move(planned));
  }
}

PackingPlan plan_items(const EncoderGraphModel& model, std::span<const ItemSize> sizes,
                       const EngineOptions& options) {
  PackingPlan plan;
  std::vector<ItemPlan> items;
  std::vector<ItemSpec> specs;
  for (const ItemSize& size : sizes) {
    items.push_back(plan_item(model, size, options.media.limits));
    specs.push_back(items.back().spec);
    plan.items.push_back(describe(items.back()));
  }
  const GraphSpec& spec = model.graph_spec();
  const GraphConfig config = resolve(model, options);
  const bool graphs = options.graphs.cudagraph_mm_encoder;
  for (const PathSpec& path : spec.paths) plan.paths.push_back(path.name);
  plan.token_budgets.resize(plan.paths.size());
  if (graphs) {
    plan.token_budgets = config.path_budgets;
    plan.max_items_per_batch = config.max_items;
  }
  const Assignment assignment = assign(specs, replica_devices(options).size());
  plan.replica_patches = assignment.loads;
  for (std::size_t replica = 0; replica < assignment.counts.size(); ++replica) {
    std::vector<std::size_t> replayed;
    std::vector<std::size_t> eager;
    for (const std::size_t item : assignment.items(replica)) {
      (graphs && serves(spec, config, items[item].modality) ? replayed : eager).push_back(item);
    }
    add_batches(plan, config, options.packing, items, replayed, replica, true);
    add_batches(plan, config, options.packing, items, eager, replica, false);
  }
  return plan;
}

}  // namespace

PackingPlan Engine::plan(std::span<const ItemSize> sizes) const {
  return plan_items(impl_->model(), sizes, impl_->options);
}

PackingPlan plan(const std::string& model, std::span<const ItemSize> sizes,
                 const EngineOptions& options) {
  const checkpoint::HfConfig files = checkpoint::read_hf_config(model);
  const ModelFamily& family = find_family(files.architecture());
  warn_of_assumptions(family, files, options);
  return plan_items(*family.make_planner(files, options.media), sizes, options);
}

}  // namespace fovea
