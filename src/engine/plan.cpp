// Planning without weights: sizes, grids, and which items would share which budget.
#include <algorithm>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "core/boundary.h"
#include "core/check.h"
#include "core/interrupt.h"
#include "engine/call_plan.h"
#include "engine/engine_impl.h"
#include "engine/family_options.h"
#include "engine/planned_item.h"
#include "engine/prepare.h"
#include "graph/capture/graph_set.h"
#include "graph/graph_config.h"
#include "media/decode_image.h"
#include "models/load_model.h"
#include "models/registry.h"

namespace fovea {

namespace {

/// What one path of a sub-batch does.
void add_path(const CallLimits& limits, const CallBatch& batch, PathId path,
              PlannedBatch& planned) {
  const std::int64_t tokens = batch.sizes.load[static_cast<std::size_t>(path)];
  std::optional<std::int64_t> budget = batch.sizes.budgets[static_cast<std::size_t>(path)];
  if (batch.sizes.too_many_seqs || (!batch.replayed && tokens > 0)) budget.reset();
  planned.tokens.push_back(tokens);
  planned.budgets.push_back(budget);
  const bool has_graph = budget.value_or(0) > 0;
  planned.padded.push_back(
      has_graph ? graph_capacity(limits.spec, limits.config, {path, *budget}).tokens - tokens : 0);
}

/// Adds what the replicas make of some items of a call, of which the first has this index.
void add_batches(const CallLimits& limits, CallSizes sizes, std::size_t begin, PackingPlan& plan) {
  const std::vector<std::vector<CallBatch>> batches = pack_call(limits, sizes);
  for (std::size_t replica = 0; replica < batches.size(); ++replica) {
    for (const CallBatch& batch : batches[replica]) {
      PlannedBatch& planned = plan.batches.emplace_back();
      planned.replica = static_cast<std::int64_t>(replica);
      const auto cut = std::ranges::find_if(
          batch.items, [](const PackedItem& packed) { return packed.path.has_value(); });
      for (const PackedItem& packed : batch.items) {
        const ItemSpec& spec = sizes[static_cast<std::size_t>(packed.item)]->spec;
        planned.items.push_back(static_cast<std::int64_t>(begin) + packed.item);
        if (packed.path) {
          planned.units.push_back({packed.first_unit, packed.units});
        } else if (cut != batch.items.end()) {  // a whole item beside a share of another
          planned.units.push_back({0, spec.units_on(*cut->path).count});
        }
        plan.replica_patches[replica] +=
            packed.path ? packed.units * spec.units_on(*packed.path).patches : spec.input_rows;
      }
      for (std::size_t path = 0; path < plan.paths.size(); ++path) {
        add_path(limits, batch, static_cast<PathId>(path), planned);
      }
    }
  }
}

/// The plan of an item of this size.
ItemPlan plan_size_of(const ItemProcessor& processor, ItemProcessors& processors,
                      const ItemSize& size, const MediaLimits& limits) {
  if (size.mm_processor_kwargs.empty()) return plan_item(processor, size, limits);
  return plan_item(*processors.of(size)->processor, size, limits);
}

PackingPlan pack_sizes(const ItemProcessor& processor, ItemProcessors& processors,
                       std::span<const ItemSize> sizes, const CallLimits& limits,
                       const EngineOptions& options) {
  PackingPlan plan;
  for (const PathSpec& path : limits.spec.paths) plan.paths.push_back(path.name);
  plan.token_budgets.resize(plan.paths.size());
  plan.replica_patches.resize(limits.num_replicas);
  if (limits.graphs) {
    plan.token_budgets = limits.config.path_budgets;
    plan.max_items_per_batch = limits.config.max_items;
  }
  std::vector<std::optional<ItemPlan>> items;
  for (const ItemSize& size : sizes) {
    check_interrupt();
    items.emplace_back(plan_size_of(processor, processors, size, options.media.limits));
    plan.items.push_back(describe(*items.back(), pruning_of(options)));
  }
  const std::size_t head = head_items(limits, items);
  add_batches(limits, CallSizes(items).first(head), 0, plan);
  add_batches(limits, CallSizes(items).subspan(head), head, plan);
  return plan;
}

}  // namespace

PackingPlan Engine::plan(std::span<const ItemSize> sizes, const CallBounds& bounds) const try {
  const CallScope scope(bounds, "plan");
  return pack_sizes(impl_->model().processor(), impl_->processors, sizes,
                    impl_->call_limits(/*eager=*/false), impl_->options);
} catch (...) {
  rethrow_as_error();
}

void Engine::check_item_options(Modality modality, const std::string& mm_processor_kwargs) const
    try {
  if (!mm_processor_kwargs.empty()) (void)impl_->processors.of(modality, mm_processor_kwargs);
} catch (...) {
  rethrow_as_error();
}

std::vector<PlannedItem> Engine::plan_items(std::vector<MediaItem> items,
                                            const CallBounds& bounds) const try {
  const CallScope scope(bounds, "plan_items");
  std::vector<std::shared_ptr<const MediaItem>> media;
  media.reserve(items.size());
  for (MediaItem& item : items) media.push_back(std::make_shared<MediaItem>(std::move(item)));
  return impl_->plan(std::move(media));
} catch (...) {
  rethrow_as_error();
}

std::vector<PlannedItem> Engine::Impl::plan(std::vector<std::shared_ptr<const MediaItem>> items) {
  using Plan = PlannedItem::Plan;
  std::vector<std::shared_ptr<const Plan>> plans(items.size());
  decode_pool.parallel_for(std::ssize(items), [&](std::int64_t i, int) {
    const auto item = static_cast<std::size_t>(i);
    const std::optional<ItemPlan> sizes =
        plan_ahead(model(), *items[item], options.media, &processors);
    if (sizes) plans[item] = std::make_shared<const Plan>(Plan{*sizes, plan_context});
  });
  std::vector<PlannedItem> planned;
  planned.reserve(items.size());
  for (std::size_t i = 0; i < items.size(); ++i) {
    planned.emplace_back(std::move(items[i]), std::move(plans[i]));
  }
  return planned;
}

ItemSize probe_image(std::span<const std::uint8_t> bytes, const std::string& name,
                     const MediaOptions& options) try {
  const media::ImageInfo info = media::probe_image(bytes, name, options);
  return {.width_px = info.width_px, .height_px = info.height_px};
} catch (...) {
  rethrow_as_error();
}

PackingPlan plan(const std::string& model, std::span<const ItemSize> sizes,
                 const EngineOptions& options, const CallBounds& bounds) try {
  const CallScope scope(bounds, "plan");
  const checkpoint::HfConfig files = read_model_files(model, options);
  check_family_options(files, options);
  const auto planner = plan_model(files, options.media, tower_output(options));
  log_preprocessing(files, planner->processor(), options);
  const std::vector<std::string> devices = replica_devices(options);
  const GraphConfig config = graph_config_of(*planner, options.max_num_batched_tokens,
                                             {.user = options.graphs,
                                              .video_allowed = options.video_pruning_rate == 0,
                                              .log = options.log});
  const CallLimits limits{.spec = planner->graph_spec(),
                          .config = config,
                          .packing = options.packing,
                          .graphs = options.graphs.cudagraph_mm_encoder,
                          .num_replicas = devices.size(),
                          .on_host = !devices.front().starts_with("cuda"),
                          .window_bytes = window_budget_bytes(thread_count(options))};
  ItemProcessors processors(files, options.media, tower_output(options));
  return pack_sizes(planner->processor(), processors, sizes, limits, with_patch_limit(options));
} catch (...) {
  rethrow_as_error();
}

}  // namespace fovea
