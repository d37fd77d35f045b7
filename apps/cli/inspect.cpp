// fovea inspect: what a checkpoint is, whether its tensors are all there, and what memory it needs.
#include <algorithm>
#include <iostream>

#include "errors.h"
#include "flags/flags.h"
#include "flags/sizes.h"
#include "fovea/engine.h"
#include "program.h"
#include "report/report_json.h"
#include "report/table.h"
#include "report/text.h"

namespace fovea::cli {
namespace {

struct InspectFlags {
  EngineFlags engine;
  std::string image;
  bool all_tensors = false;
  bool json = false;
};

std::string yes_or_no(bool value) { return value ? "yes" : "no"; }

std::string facts_table(const ModelReport& report, const PackingPlan& plan) {
  using enum Table::Align;
  Table table({{"property", kLeft}, {"value", kLeft}});
  table.add_row({"architecture", report.architecture});
  table.add_row({"family", report.family});
  table.add_row({"row width", std::to_string(report.width) + " = hidden " +
                                  std::to_string(report.hidden) + " x (1 + " +
                                  std::to_string(report.deepstack_levels) + " deepstack levels)"});
  table.add_row({"images", yes_or_no(report.images)});
  table.add_row({"videos", yes_or_no(report.videos)});
  for (const auto& [name, value] : report.facts) table.add_row({name, one_line(value)});
  table.add_row({"parameters", std::to_string(report.parameters)});
  table.add_row({"weights", bytes_text(report.weight_bytes)});
  for (std::size_t path = 0; path < plan.paths.size(); ++path) {
    const std::vector<std::int64_t>& budgets = plan.token_budgets.at(path);
    table.add_row({"budgets, path " + plan.paths[path],
                   budgets.empty() ? "none, always eager" : join(budgets, " ")});
  }
  if (plan.max_items_per_batch > 0) {
    table.add_row({"items per sub-batch", std::to_string(plan.max_items_per_batch)});
  }
  return table.text(table_columns());
}

std::string memory_table(const ModelReport& report) {
  Table table({{"path", Table::Align::kLeft}, {"token budget"}, {"activations"}});
  for (const ArenaReport& arena : report.arenas) {
    table.add_row({arena.path, std::to_string(arena.token_budget), bytes_text(arena.bytes)});
  }
  return table.text();
}

std::string tensors_table(const std::vector<TensorReport>& tensors, bool all) {
  using enum Table::Align;
  Table table({{"tensor", kLeft}, {"dtype", kLeft}, {"shape", kLeft}, {"problem", kLeft}});
  for (const TensorReport& tensor : tensors) {
    if (!all && tensor.problem.empty()) continue;
    table.add_row({one_line(tensor.name), tensor.dtype.empty() ? "-" : tensor.dtype,
                   "[" + join(tensor.shape, ", ") + "]",
                   tensor.problem.empty() ? "-" : one_line(tensor.problem)});
  }
  return table.text(table_columns());
}

/// Tensors that are missing or have another shape.
std::int64_t count_broken(const ModelReport& report) {
  return std::count_if(report.tensors.begin(), report.tensors.end(),
                       [](const TensorReport& t) { return !t.problem.empty(); });
}

void print_report(const InspectFlags& flags, const ModelReport& report, const PackingPlan& plan) {
  const std::int64_t broken = count_broken(report);
  std::cout << facts_table(report, plan) << "\n";
  if (!report.arenas.empty()) std::cout << memory_table(report) << "\n";
  if (!plan.items.empty()) {
    const ItemInfo& item = plan.items.front();
    std::cout << flags.image << " -> " << size_text(item.resized_width_px, item.resized_height_px)
              << ", grid " << (item.grid_thw ? join(*item.grid_thw, "x") : "-") << ", "
              << item.patches << " patches, " << item.rows << " rows\n\n";
  }
  if (flags.all_tensors || broken > 0) {
    std::cout << tensors_table(report.tensors, flags.all_tensors) << "\n";
  }
  std::cout << report.tensors.size() << " tensors of the tower, " << broken
            << " missing or misshapen\n";
}

int run_inspect(const InspectFlags& flags, Console& console) {
  const EngineOptions options = engine_options(flags.engine, console);
  check_limits(flags.engine, options);
  std::vector<ItemSize> sizes;
  if (!flags.image.empty()) sizes.push_back(parse_size(flags.image));
  const ModelReport report = inspect(flags.engine.model, options);
  const PackingPlan packing = plan(flags.engine.model, sizes, options);
  if (flags.json) {
    JsonObject json = to_json(report);
    json.set("plan", to_json(packing));
    std::cout << json_text(json);
  } else {
    print_report(flags, report, packing);
  }
  const std::int64_t broken = count_broken(report);
  if (broken == 0) return kExitOk;
  console.error(flags.engine.model + ": " + std::to_string(broken) + " of " +
                std::to_string(report.tensors.size()) + " tensors are missing or misshapen");
  return kExitFailure;
}

void add_flags(CLI::App& verb, InspectFlags& flags) {
  add_model(verb, flags.engine);
  verb.add_option("--image", flags.image, "Also show what an image (or video) of this size becomes")
      ->type_name("WxH[xNf]");
  verb.add_flag("--tensors", flags.all_tensors, "List all tensors, not only those with problems");
  verb.add_flag("--json", flags.json, "Print JSON instead of tables");
  add_engine_flags(verb, flags.engine);
}

constexpr VerbText kInspectText{
    .name = "inspect",
    .summary = "Describe a checkpoint, its tensors and memory",
    .footer = R"(Exit code 1 if a tensor is missing or has another shape.

Examples:
  fovea inspect ./Qwen3-VL --image 1920x1080
  fovea inspect ./Qwen3-VL --json)",
};

}  // namespace

void add_inspect(CLI::App& app, Program& program) {
  add_verb(app, program, kInspectText, add_flags, run_inspect);
}

}  // namespace fovea::cli
