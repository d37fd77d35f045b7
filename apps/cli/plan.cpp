// fovea plan: what a set of sizes becomes and how it is packed, without weights or images.
#include <algorithm>
#include <iostream>

#include "errors.h"
#include "flags/flags.h"
#include "flags/sizes.h"
#include "fovea/engine.h"
#include "inputs.h"
#include "program.h"
#include "report/report_json.h"
#include "report/table.h"
#include "report/text.h"

namespace fovea::cli {
namespace {

struct PlanFlags {
  EngineFlags engine;
  std::string sizes;
  std::string mm_processor_kwargs;
  bool json = false;
};

std::string items_table(const PackingPlan& plan, const std::vector<ItemSize>& sizes) {
  Table table({{"#"}, {"item"}, {"resized"}, {"grid"}, {"patches"}, {"rows"}});
  for (std::size_t i = 0; i < plan.items.size(); ++i) {
    const ItemInfo& item = plan.items[i];
    table.add_row({std::to_string(i), to_text(sizes.at(i)),
                   size_text(item.resized_width_px, item.resized_height_px),
                   item.grid_thw ? join(*item.grid_thw, "x") : "-", std::to_string(item.patches),
                   std::to_string(item.rows)});
  }
  return table.text();
}

/// "0 2 5", or "0[0] 2[0-26]" where units of items are meant; of a long list the beginning and how
/// much is left out.
std::string items_text(const PlannedBatch& batch) {
  constexpr std::size_t kShown = 8;
  std::vector<std::string> texts;
  for (std::size_t i = 0; i < std::min(batch.items.size(), kShown); ++i) {
    std::string& text = texts.emplace_back(std::to_string(batch.items[i]));
    if (batch.units.empty()) continue;
    const auto& [first, count] = batch.units[i];
    text += "[" + std::to_string(first);
    if (count > 1) text += "-" + std::to_string(first + count - 1);
    text += "]";
  }
  std::string all = join(texts, " ");
  if (batch.items.size() > kShown) {
    all += " ... (" + std::to_string(batch.items.size() - kShown) + " more)";
  }
  return all;
}

struct Padding {
  std::int64_t tokens = 0;  ///< of items in replays
  std::int64_t padded = 0;
};

std::string batches_table(const PackingPlan& plan, Padding& total) {
  using enum Table::Align;
  const bool several = plan.replica_patches.size() > 1;
  std::vector<Table::Column> columns{{"batch"}};
  if (several) columns.push_back({"replica"});
  columns.insert(columns.end(), {{"path", kLeft},
                                 {"count"},
                                 {"tokens"},
                                 {"budget"},
                                 {"load"},
                                 {"padding"},
                                 {"items", kLeft}});
  Table table(columns);
  for (std::size_t b = 0; b < plan.batches.size(); ++b) {
    const PlannedBatch& batch = plan.batches[b];
    for (std::size_t path = 0; path < plan.paths.size(); ++path) {
      const std::int64_t tokens = batch.tokens.at(path);
      const std::optional<std::int64_t> budget = batch.budgets.at(path);
      if (!batch.units.empty() && tokens == 0) continue;  // units are those of one path
      std::vector<std::string> cells{std::to_string(b)};
      if (several) cells.push_back(std::to_string(batch.replica));
      cells.insert(cells.end(),
                   {plan.paths[path], std::to_string(batch.items.size()), std::to_string(tokens)});
      if (!budget) {
        cells.insert(cells.end(), {"eager", "-", "-"});
      } else if (*budget == 0) {
        cells.insert(cells.end(), {"none", "-", "-"});
      } else {
        const std::int64_t padded = batch.padded.at(path);
        total.tokens += tokens;
        total.padded += padded;
        cells.insert(cells.end(),
                     {std::to_string(*budget),
                      percent(static_cast<double>(tokens) / static_cast<double>(tokens + padded)),
                      std::to_string(padded)});
      }
      cells.push_back(items_text(batch));
      table.add_row(std::move(cells));
    }
  }
  return table.text();
}

void print_plan(const PackingPlan& plan, const std::vector<ItemSize>& sizes) {
  Padding padding;
  std::int64_t rows = 0;
  for (const ItemInfo& item : plan.items) rows += item.rows;
  const std::string batches = batches_table(plan, padding);
  std::cout << items_table(plan, sizes) << "\n" << batches << "\n";
  for (std::size_t path = 0; path < plan.paths.size(); ++path) {
    const std::vector<std::int64_t>& budgets = plan.token_budgets.at(path);
    std::cout << "budgets  " << plan.paths[path] << ": "
              << (budgets.empty() ? "none, always eager" : join(budgets, " ")) << "\n";
  }
  if (plan.replica_patches.size() > 1) {
    std::cout << "patches  per replica: " << join(plan.replica_patches, " ") << "\n";
  }
  std::cout << "total    " << counted(std::ssize(plan.items), "item") << ", "
            << counted(rows, "row") << ", "
            << counted(std::ssize(plan.batches), "sub-batch", "sub-batches");
  if (padding.tokens > 0) {
    const auto padded = static_cast<double>(padding.padded);
    std::cout << ", padding " << padding.padded << " of " << padding.tokens + padding.padded
              << " tokens (" << percent(padded / (padded + static_cast<double>(padding.tokens)))
              << ")";
  }
  std::cout << "\n";
}

int run_plan(const PlanFlags& flags, Console& console) {
  const EngineOptions options = engine_options(flags.engine, console);
  check_limits(flags.engine, options);
  std::vector<ItemSize> sizes = parse_sizes(flags.sizes);
  for (ItemSize& size : sizes) size.mm_processor_kwargs = flags.mm_processor_kwargs;
  const PackingPlan result = plan(flags.engine.model, sizes, options);
  if (flags.json) {
    JsonObject json = to_json(result);
    json.set("model", model_name(flags.engine.model));
    json.set("media_profile", value_name(options.media.profile));
    std::cout << json_text(json);
  } else {
    print_plan(result, sizes);
  }
  return kExitOk;
}

void add_flags(CLI::App& verb, PlanFlags& flags) {
  add_model(verb, flags.engine);
  verb.add_option("--sizes", flags.sizes,
                  "WxH for an image, upright as --media-profile makes it; WxHxNf for a video of N "
                  "frames; or @FILE")
      ->type_name("WxH[xNf],...")
      ->required();
  add_item_options(verb, flags.mm_processor_kwargs);
  verb.add_flag("--json", flags.json, "Print JSON instead of tables");
  add_engine_flags(verb, flags.engine);
}

constexpr VerbText kPlanText{
    .name = "plan",
    .summary = "Show sizes, grids, rows and packing of a set of images",
    .footer = R"(Reads the JSON files of the model only; no weights are needed.

Examples:
  fovea plan ./Qwen3-VL --sizes 640x480,1024x1024x8f
  fovea plan ./Qwen3-VL --sizes @sizes.txt --token-budgets 512,1024,4096 --json)",
};

}  // namespace

void add_plan(CLI::App& app, Program& program) {
  add_verb(app, program, kPlanText, add_flags, run_plan);
}

}  // namespace fovea::cli
