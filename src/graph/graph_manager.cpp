// Packs, then replays or runs eagerly: this file decides, the others do.
#include "graph/graph_manager_impl.h"

#include <algorithm>
#include <array>
#include <exception>
#include <memory>

#include "core/check.h"
#include "core/interrupt.h"
#include "core/stopwatch.h"
#include "fovea/tower/ops/context.h"

namespace fovea {

namespace {

bool needs_no_path(const PreparedItem* item) {
  return std::ranges::all_of(item->plan.spec.path_tokens,
                             [](std::int64_t tokens) { return tokens == 0; });
}

std::int64_t patches_of(std::span<const PreparedItem* const> items) {
  std::int64_t patches = 0;
  for (const PreparedItem* item : items) patches += item->plan.spec.input_rows;
  return patches;
}

/// Key of the graph that a sub-batch would replay on a path; absent if none could be.
std::optional<GraphKey> key_of(PathId path, const SubBatch& plan) {
  const std::optional<std::int64_t> budget = plan.budgets[static_cast<std::size_t>(path)];
  if (!budget || *budget == 0 || plan.too_many_seqs) return std::nullopt;
  return GraphKey{.path = path, .budget = *budget};
}

}  // namespace

GraphManager::Impl::Impl(const EncoderGraphModel& encoder, Device& device,
                         const GraphManagerOptions& choices)
    : model(encoder),
      options(choices),
      config(graph_config_of(encoder, choices.max_num_batched_tokens,
                             {.user = choices.user,
                              .video_allowed = choices.video_allowed && !choices.videos_are_pruned,
                              .log = choices.log})),
      runners(encoder, config, device),
      stats(encoder.graph_spec()),
      batch_log(encoder.graph_spec(), device.properties().name, choices.log),
      warnings(choices.log),
      scratches([] { return std::make_unique<Scratch>(); }),
      capture(encoder, config, options, runners) {}

GraphManager::GraphManager(const EncoderGraphModel& model, Device& device,
                           const GraphManagerOptions& options, TowerVersion<kTowerVersion>)
    : impl_(std::make_unique<Impl>(model, device, options)) {}

GraphManager::~GraphManager() = default;

// --- graphs ---

void GraphManager::capture() {
  if (impl_->options.user.cudagraph_mm_encoder) impl_->capture.capture_all();
}

void GraphManager::capture_in_background() { impl_->capture.start_in_background(); }

void GraphManager::wait_for_background() { impl_->capture.wait_for_background(); }

void GraphManager::trim() {
  const std::lock_guard lock(impl_->runners.mutex);
  impl_->runners.eager.clear();
  if (impl_->runners.graphs.graphs().empty()) impl_->runners.graphs.clear();
  impl_->scratches.clear();
}

void GraphManager::clear() {
  const std::lock_guard lock(impl_->runners.mutex);
  impl_->capture.clear();
}

bool GraphManager::is_captured() const {
  const std::lock_guard lock(impl_->runners.mutex);
  return !impl_->runners.graphs.graphs().empty();
}

void GraphManager::Impl::capture_for(const SubBatch& plan) {
  std::array<GraphKey, kMaxPaths> wanted{};
  std::size_t count = 0;
  for (std::size_t path = 0; path < config.path_budgets.size(); ++path) {
    const std::optional<GraphKey> key = key_of(static_cast<PathId>(path), plan);
    if (key && capture.is_possible(*key)) wanted[count++] = *key;
  }
  capture.capture(std::span(wanted).first(count));
}

// --- execution ---

RunTimes GraphManager::execute(std::span<const PreparedItem* const> items,
                               std::span<const TensorView> out, Stream* reader,
                               std::span<ItemUse> uses) {
  return impl_->run(
      items, out, impl_->options.user.cudagraph_mm_encoder ? Impl::Forced() : MissReason::kDisabled,
      reader, uses);
}

RunTimes GraphManager::execute_eager(std::span<const PreparedItem* const> items,
                                     std::span<const TensorView> out, Stream* reader,
                                     std::span<ItemUse> uses) {
  return impl_->run(items, out, MissReason::kRequested, reader, uses);
}

RunTimes GraphManager::Impl::run(Items items, Rows out, Forced forced, Stream* reader,
                                 std::span<ItemUse> uses) {
  check_destinations(items, out);
  FOVEA_CHECK(uses.empty() || uses.size() == items.size(), kInvalidArgument, items.size(),
              " items have as many uses of graphs, got room for ", uses.size());
  std::ranges::fill(uses, ItemUse{});
  const auto scratch = scratches.take();
  Run run{.items = items,
          .out = out,
          .uses = uses,
          .scratch = *scratch,
          .patches_left = patches_of(items)};
  scratch->inputs.host_ms = 0;
  take_turn(run);
  try {
    if (reader != nullptr) runners.lane.compute().wait_for(*reader);
    submit(run, forced);
    if (reader != nullptr) {
      reader->wait_for(runners.lane.compute());
    } else {
      runners.lane.synchronize();
    }
  } catch (...) {
    if (runners.lane.device().properties().host_memory) throw;  // nothing is in flight
    // Work submitted before the failure still writes to `out`, which the caller is free to
    // release once this exception arrives.
    const std::exception_ptr failure = std::current_exception();
    const InterruptScope to_the_end(nullptr);
    if (!run.turn) take_turn(run);
    runners.lane.synchronize();
    std::rethrow_exception(failure);
  }
  run.times.packing_ms += scratch->inputs.host_ms;
  stats.log_progress(options.log, options.log_interval);
  return run.times;
}

void GraphManager::Impl::take_turn(Run& run) {
  const Stopwatch waiting;
  if (run.turn.owns_lock()) {
    run.turn.release();  // if the wait ends early, nothing is locked
    runners.mutex.give_way(run.patches_left);
  } else {
    runners.mutex.lock(run.patches_left);
  }
  run.turn = std::unique_lock(runners.mutex, std::adopt_lock);
  run.times.waiting_ms += waiting.elapsed_ms();
}

void GraphManager::Impl::check_destinations(Items items, Rows out) const {
  FOVEA_CHECK(items.size() == out.size(), kInvalidArgument, items.size(),
              " items need as many destinations, got ", out.size());
  const std::int64_t width = model.graph_spec().out_width;
  for (std::size_t i = 0; i < items.size(); ++i) {
    const std::int64_t rows = items[i]->plan.spec.out_rows;
    FOVEA_CHECK(rows == 0 || out[i].shape == Shape({rows, width}), kInvalidArgument, "item ", i,
                " needs a destination of [", rows, ", ", width, "], got ", out[i].shape);
  }
}

void GraphManager::Impl::submit(Run& run, Forced forced) {
  const Items items = run.items;
  const auto run_those = [&](Forced reason, auto&& wanted) {
    std::vector<std::size_t>& indices = run.scratch.selection.indices;
    indices.clear();
    for (std::size_t i = 0; i < items.size(); ++i) {
      if (!needs_no_path(items[i]) && wanted(items[i]->plan)) indices.push_back(i);
    }
    if (!indices.empty()) run_selection(run, reason);
  };
  const auto is_served = [&](const ItemPlan& plan) {
    return serves(model.graph_spec(), config, plan.modality);
  };
  const auto is_pruned = [&](const ItemPlan& plan) {
    return options.videos_are_pruned && plan.modality == Modality::kVideo;
  };
  stats.count_skipped(std::ranges::count_if(items, needs_no_path));
  if (forced) {
    run_those(forced, [](const ItemPlan&) { return true; });
  } else {
    run_those(std::nullopt, is_served);
    run_those(MissReason::kPruning, is_pruned);
    run_those(MissReason::kUnsupportedModality,
              [&](const ItemPlan& plan) { return !is_served(plan) && !is_pruned(plan); });
  }
}

void GraphManager::Impl::run_selection(Run& run, Forced forced) {
  Selection& selection = run.scratch.selection;
  const Stopwatch packing;
  selection.items.clear();
  for (const std::size_t index : selection.indices) selection.items.push_back(run.items[index]);
  find_copies(run);
  pack(selection.specs, limits_of(config, !forced), capture.costs(), options.packing,
       selection.packing);
  for (const PackedItem& packed : selection.packing.order) {
    ++selection.progress[static_cast<std::size_t>(packed.item)].to_come;
  }
  run.times.packing_ms += packing.elapsed_ms();
  for (const SubBatch& plan : selection.packing.batches) {
    check_interrupt();
    take_turn(run);
    run_batch(run, plan, forced);
  }
}

void GraphManager::Impl::find_copies(Run& run) {
  Selection& selection = run.scratch.selection;
  UnitReuse& reuse = selection.reuse;
  const bool are_sought = options.packing == PackingPolicy::kUnits && options.reuse_units;
  reuse.clear();
  if (are_sought) reuse.find(selection.items, config.path_budgets.size());
  selection.specs.clear();
  selection.progress.clear();
  for (std::size_t place = 0; place < selection.items.size(); ++place) {
    const std::int64_t copies = reuse.num_copies(place);
    selection.specs.push_back(copies > 0 ? reuse.spec(place) : selection.items[place]->plan.spec);
    selection.progress.push_back({.runs = {}, .to_come = copies});
    if (!run.uses.empty()) run.uses[selection.indices[place]].units_reused = copies;
  }
  stats.count_reused(reuse.num_copies());
}

void GraphManager::Impl::run_batch(Run& run, const SubBatch& plan, Forced forced) {
  if (!forced && options.missing == MissingGraph::kCapture) capture_for(plan);
  Selection& selection = run.scratch.selection;
  const std::span<const PackedItem> batch = selection.packing.items(plan);
  const auto is_load = [](std::int64_t tokens) { return tokens > 0; };
  if (std::ranges::any_of(plan.load, is_load)) {  // not of copies alone
    batch_log.begin();
    stats.count_sub_batch();
  }
  for (std::size_t i = 0; i < config.path_budgets.size(); ++i) {
    if (plan.load[i] == 0) continue;
    const auto path = static_cast<PathId>(i);
    collect_parts(run, plan, path);
    const std::optional<MissReason> miss = run_path(run, plan, path, forced);
    for (const std::size_t place : selection.places) selection.progress[place].runs.add(path, miss);
    for (const ItemPart& part : selection.parts) run.patches_left -= part.patches();
  }
  for (const PackedItem& packed : batch) advance(run, static_cast<std::size_t>(packed.item));
  runners.eager.give_back_idle_memory();
}

void GraphManager::Impl::collect_parts(Run& run, const SubBatch& plan, PathId path) {
  Selection& selection = run.scratch.selection;
  selection.parts.clear();
  selection.places.clear();
  selection.out.clear();
  for (const PackedItem& packed : selection.packing.items(plan)) {
    const auto place = static_cast<std::size_t>(packed.item);
    const std::int64_t count =
        packed.path ? packed.units : selection.specs[place].units_on(path).count;
    if (count == 0) continue;
    if (selection.reuse.num_copies() > 0) {
      selection.reuse.append_parts(place, path, packed.first_unit, count, selection.parts);
    } else {
      selection.parts.push_back({selection.items[place], path, packed.first_unit, count});
    }
    selection.places.resize(selection.parts.size(), place);
    selection.out.resize(selection.parts.size(), run.out[selection.indices[place]]);
  }
}

void GraphManager::Impl::advance(Run& run, std::size_t place) {
  Selection& selection = run.scratch.selection;
  Progress& progress = selection.progress[place];
  if (--progress.to_come > 0) return;
  stats.count_item(progress.runs);
  if (!run.uses.empty()) run.uses[selection.indices[place]].graph = progress.runs.use();
}

std::optional<MissReason> GraphManager::Impl::run_path(Run& run, const SubBatch& plan, PathId path,
                                                       Forced forced) {
  const Selection& selection = run.scratch.selection;
  TensorView rows;
  const std::optional<MissReason> miss = forced ? forced : try_replay(run, plan, path, rows);
  if (miss) {
    rows = runners.eager.run(path, selection.parts, run.scratch.inputs);
    stats.count_eager(path);
    batch_log.ran_eagerly(path, selection.parts, *miss);
  }
  Arena scratch = (miss ? runners.eager.memory() : runners.graphs.memory()).arena();
  ExecContext ctx = runners.lane.context(scratch);
  model.assemble(ctx, path, rows, selection.parts, selection.out);
  if (selection.reuse.num_copies() > 0) assemble_copies(run, ctx, path, rows, miss);
  return miss;
}

void GraphManager::Impl::assemble_copies(Run& run, ExecContext& ctx, PathId path,
                                         const TensorView& rows, std::optional<MissReason> miss) {
  Selection& selection = run.scratch.selection;
  std::int64_t row = 0;
  for (std::size_t i = 0; i < selection.parts.size(); ++i) {
    const ItemPart& part = selection.parts[i];
    const std::int64_t unit_rows = part.units().rows;
    for (std::int64_t unit = part.first; unit < part.first + part.count; ++unit) {
      const TensorView of_unit = row_range(rows, row, unit_rows);
      row += unit_rows;
      for (const UnitReuse::Copy& copy :
           selection.reuse.copies_of({selection.places[i], path, unit})) {
        const std::size_t place = copy.to.item;
        const ItemPart to{selection.items[place], path, copy.to.index, 1};
        model.assemble(ctx, path, of_unit, {&to, 1}, {&run.out[selection.indices[place]], 1});
        selection.progress[place].runs.add(path, miss);
        advance(run, place);
      }
    }
  }
}

std::optional<MissReason> GraphManager::Impl::try_replay(Run& run, const SubBatch& plan,
                                                         PathId path, TensorView& rows) {
  const std::optional<GraphKey> key = key_of(path, plan);
  if (!key) return plan.too_many_seqs ? MissReason::kFrames : MissReason::kOversized;
  const BudgetGraph* const graph = runners.graphs.find(*key);
  if (graph == nullptr) {
    if (!capture.runs_in_background()) {
      warnings.warn("encoder_graphs.not_captured " + describe(model.graph_spec(), *key));
    }
    return MissReason::kNotCaptured;
  }
  if (capture.eager_wins(*graph, plan.load[static_cast<std::size_t>(path)])) {
    return MissReason::kSlower;
  }
  const std::span<const ItemPart> parts = run.scratch.selection.parts;
  try {
    rows = graph->replay(runners.lane, runners.graphs.memory(), parts, run.scratch.inputs);
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kUnavailable) throw;
    const std::vector<InputWriter::Slot>& slots = run.scratch.inputs.slots;
    const auto slot = std::ranges::find(slots, true, &InputWriter::Slot::too_small);
    warnings.warn(cat("encoder_graphs.input_too_small path=",
                      model.graph_spec().paths[static_cast<std::size_t>(path)].name,
                      " buffer=", slot == slots.end() ? "?" : slot->decl->name));
    return MissReason::kCapacity;
  }
  stats.count_replay(path, parts, graph->capacity().tokens);
  batch_log.replayed(path, parts, key->budget, graph->capacity().tokens);
  return std::nullopt;
}

// --- queries ---

const GraphConfig& GraphManager::config() const noexcept { return impl_->config; }

std::size_t GraphManager::num_waiting() const { return impl_->runners.mutex.num_waiting(); }

void GraphManager::fill_memory_with_nan() {
  const std::lock_guard lock(impl_->runners.mutex);
  impl_->runners.eager.memory().fill_with_nan();
  impl_->runners.graphs.memory().fill_with_nan();
}

Stats GraphManager::stats() const {
  const GraphMemoryReport bytes = memory();
  const std::lock_guard lock(impl_->runners.mutex);
  Stats stats = impl_->stats.snapshot();
  stats.num_budgets = std::ssize(impl_->runners.graphs.graphs());
  stats.token_budgets = impl_->config.token_budgets;
  for (std::size_t path = 0; path < stats.paths.size(); ++path) {
    if (impl_->options.user.cudagraph_mm_encoder) {
      stats.paths[path].token_budgets = impl_->config.path_budgets[path];
    }
  }
  stats.capture_seconds = impl_->capture.total_ms() / 1000;
  stats.graph_bytes = static_cast<std::int64_t>(bytes.graphs());
  for (const auto& graph : impl_->runners.graphs.graphs()) {
    stats.graphs.push_back(impl_->capture.report_of(*graph));
  }
  return stats;
}

GraphMemoryReport GraphManager::memory() const {
  const std::lock_guard lock(impl_->runners.mutex);
  const RunMemory& shared = impl_->runners.graphs.memory();
  return {.arena = shared.arena_bytes(),
          .inputs = shared.input_bytes(),
          .outputs = shared.output_bytes(),
          .recordings = impl_->runners.graphs.recording_bytes(),
          .eager = impl_->runners.eager.memory().device_bytes(),
          .host = shared.host_bytes()};
}

std::vector<GraphKey> GraphManager::captured_keys() const {
  const std::lock_guard lock(impl_->runners.mutex);
  std::vector<GraphKey> keys;
  for (const auto& graph : impl_->runners.graphs.graphs()) keys.push_back(graph->key());
  return keys;
}

}  // namespace fovea
