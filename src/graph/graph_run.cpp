// A run of items: packs them, then replays or runs eagerly. This file decides, the others do.
#include <algorithm>
#include <array>
#include <exception>

#include "core/check.h"
#include "core/interrupt.h"
#include "core/stopwatch.h"
#include "fovea/tower/ops/context.h"
#include "graph/graph_manager_impl.h"

namespace fovea {

namespace {

bool needs_no_path(const PreparedItem* item) {
  return std::ranges::all_of(item->plan.spec.path_tokens,
                             [](std::int64_t tokens) { return tokens == 0; });
}

ItemShare share_of(std::span<const ItemShare> shares, std::size_t item) {
  return shares.empty() ? ItemShare{} : shares[item];
}

/// @throws Error(kInvalidArgument) for units that the item does not have.
void check_share(const ItemSpec& item, const ItemShare& share, std::size_t index) {
  const UnitRange& units = share.units;
  if (units == UnitRange{} && share.part.size == 1) return;
  const std::optional<int> path = ItemShare::only_path_of(item);
  FOVEA_CHECK(path, kInvalidArgument, "item ", index, " cannot be shared");
  const std::int64_t count = item.units_on(*path).count;
  FOVEA_CHECK(units.first >= 0 && units.count >= 1 && units.first <= count - units.count,
              kInvalidArgument, "item ", index, " has ", count, " units, its share is ",
              units.count, " from ", units.first, " on");
  FOVEA_CHECK(share.part.size == 1 || units.count == 1, kInvalidArgument, "item ", index,
              ": a team computes one unit, got ", units.count);
}

std::int64_t patches_of(std::span<const PreparedItem* const> items,
                        std::span<const ItemShare> shares) {
  std::int64_t patches = 0;
  for (std::size_t i = 0; i < items.size(); ++i) {
    patches += share_of(shares, i).spec_of(items[i]->plan.spec).input_rows;
  }
  return patches;
}

/// The rows of a whole item, of which only those of the share are there, and may be touched.
TensorView whole_rows(const TensorView& out, const ItemSpec& item, const ItemShare& share) {
  if (share.units.count == 0) return out;
  const std::int64_t first = share.units.first * item.units_on(*ItemShare::path_of(item)).rows;
  const std::size_t before = static_cast<std::size_t>(first * out.shape[1]) * size_of(out.dtype);
  const auto address = reinterpret_cast<std::uintptr_t>(out.data) - before;
  // NOLINTNEXTLINE(performance-no-int-to-ptr): outside of what `out` refers to
  return {reinterpret_cast<std::byte*>(address), out.dtype, {item.out_rows, out.shape[1]}};
}

/// Key of the graph that a sub-batch would replay on a path; absent if none could be.
std::optional<GraphKey> key_of(PathId path, const SubBatch& plan) {
  const std::optional<std::int64_t> budget = plan.budgets[static_cast<std::size_t>(path)];
  if (!budget || *budget == 0 || plan.too_many_seqs) return std::nullopt;
  return GraphKey{.path = path, .budget = *budget};
}

}  // namespace

void GraphManager::Impl::capture_for(const SubBatch& plan) {
  std::array<GraphKey, kMaxPaths> wanted{};
  std::size_t count = 0;
  for (std::size_t path = 0; path < config.path_budgets.size(); ++path) {
    const std::optional<GraphKey> key = key_of(static_cast<PathId>(path), plan);
    if (key && capture.is_possible(*key)) wanted[count++] = *key;
  }
  capture.capture(std::span(wanted).first(count));
}

RunTimes GraphManager::Impl::run(Items items, Rows out, Forced forced, const RunOptions& how) {
  check_request(items, out, how);
  std::ranges::fill(how.uses, ItemUse{});
  const auto scratch = scratches.take();
  Run run{.items = items,
          .out = out,
          .how = how,
          .scratch = *scratch,
          .patches_left = patches_of(items, how.shares)};
  scratch->inputs.host_ms = 0;
  take_turn(run);
  try {
    if (how.reader != nullptr) runners.lane.compute().wait_for(*how.reader);
    wait_for_pixels(items);
    if (how.team != nullptr) {
      run_in_team(run);
    } else {
      submit(run, forced);
    }
    if (how.reader != nullptr) {
      how.reader->wait_for(runners.lane.compute());
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

void GraphManager::Impl::wait_for_pixels(Items items) {
  const CallerStream* last = nullptr;
  for (const PreparedItem* item : items) {
    const CallerStream& stream = item->written_by;
    const bool is_known =
        last != nullptr && last->device == stream.device && last->handle == stream.handle;
    if (stream.device == CallerStream::kNone || is_known) continue;
    Lane& lane = runners.lane;
    lane.compute().wait_for(*lane.device().adopt_stream(stream.device, stream.handle));
    last = &stream;
  }
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

void GraphManager::Impl::check_request(Items items, Rows out, const RunOptions& how) const {
  FOVEA_CHECK(items.size() == out.size(), kInvalidArgument, items.size(),
              " items need as many destinations, got ", out.size());
  FOVEA_CHECK(how.uses.empty() || how.uses.size() == items.size(), kInvalidArgument, items.size(),
              " items have as many uses of graphs, got room for ", how.uses.size());
  FOVEA_CHECK(how.team == nullptr || (items.size() == 1 && how.shares.size() == 1),
              kInvalidArgument, "a team runs one share of one item, got ", items.size(), " items");
  FOVEA_CHECK(how.shares.empty() || how.shares.size() == items.size(), kInvalidArgument,
              items.size(), " items have as many shares, got ", how.shares.size());
  const std::int64_t width = model.graph_spec().out_width;
  for (std::size_t i = 0; i < items.size(); ++i) {
    const ItemSpec& spec = items[i]->plan.spec;
    if (!how.shares.empty()) check_share(spec, how.shares[i], i);
    const std::int64_t rows = share_of(how.shares, i).spec_of(spec).out_rows;
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

void GraphManager::Impl::run_in_team(Run& run) {
  const ItemShare& share = run.how.shares.front();
  const PreparedItem& item = *run.items.front();
  const PathId path = *ItemShare::only_path_of(item.plan.spec);
  const ItemPart part{&item, path, share.units.first, 1, share.part};
  const std::span<const ItemPart> parts(&part, 1);
  batch_log.begin();
  stats.count_sub_batch();
  const TensorView rows = runners.eager.run_in_team(path, part, *run.how.team, run.scratch.inputs);
  stats.count_eager(path);
  batch_log.ran_eagerly(path, parts, MissReason::kTeam);
  runners.lane.compute().copy(run.out.front().data, rows.data, rows.bytes());
  runners.lane.synchronize();  // a member that was lost is known now
  run.how.team->check();
  GraphStats::ItemRuns runs;
  runs.add(path, MissReason::kTeam);
  if (share.counts) stats.count_item(runs);
  if (!run.how.uses.empty()) run.how.uses.front().graph = runs.use();
  run.patches_left = 0;
  runners.eager.give_back_idle_memory();
}

void GraphManager::Impl::run_selection(Run& run, Forced forced) {
  Selection& selection = run.scratch.selection;
  const Stopwatch packing;
  selection.items.clear();
  selection.shares.clear();
  for (const std::size_t index : selection.indices) {
    selection.items.push_back(run.items[index]);
    if (!run.how.shares.empty()) selection.shares.push_back(run.how.shares[index]);
  }
  find_copies(run);
  const bool pads = !forced && !runners.lane.device().properties().host_memory;
  const bool by_load = options.packing == PackingPolicy::kUnits && !pads;
  pack(selection.specs, limits_of(config, !forced), by_load ? cost_of_loads : capture.costs(),
       options.packing, selection.packing);
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
  if (are_sought) reuse.find(selection.items, selection.shares, config.path_budgets.size());
  selection.specs.clear();
  selection.progress.clear();
  for (std::size_t place = 0; place < selection.items.size(); ++place) {
    const std::int64_t copies = reuse.num_copies(place);
    const ItemShare share = share_of(selection.shares, place);
    selection.specs.push_back(copies > 0 ? reuse.spec(place)
                                         : share.spec_of(selection.items[place]->plan.spec));
    selection.progress.push_back({.runs = {}, .to_come = copies});
    if (!run.how.uses.empty()) run.how.uses[selection.indices[place]].units_reused = copies;
  }
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
    const std::int64_t all = selection.specs[place].units_on(path).count;
    const std::int64_t count = packed.path ? packed.units : all;
    if (all == 0 || (packed.path && *packed.path != path)) continue;
    if (selection.reuse.num_copies() > 0) {
      selection.reuse.append_parts(place, path, packed.first_unit, count, selection.parts);
    } else {
      const std::int64_t first = share_of(selection.shares, place).units.first + packed.first_unit;
      selection.parts.push_back({selection.items[place], path, first, count});
    }
    selection.places.resize(selection.parts.size(), place);
    selection.out.resize(selection.parts.size(), rows_of(run, place));
  }
}

TensorView GraphManager::Impl::rows_of(const Run& run, std::size_t place) {
  const Selection& selection = run.scratch.selection;
  return whole_rows(run.out[selection.indices[place]], selection.items[place]->plan.spec,
                    share_of(selection.shares, place));
}

void GraphManager::Impl::advance(Run& run, std::size_t place) {
  Selection& selection = run.scratch.selection;
  Progress& progress = selection.progress[place];
  if (--progress.to_come > 0) return;
  if (share_of(selection.shares, place).counts) stats.count_item(progress.runs);
  if (!run.how.uses.empty()) run.how.uses[selection.indices[place]].graph = progress.runs.use();
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
        const TensorView out = rows_of(run, place);
        model.assemble(ctx, path, of_unit, {&to, 1}, {&out, 1});
        stats.count_reused_unit();
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

}  // namespace fovea
