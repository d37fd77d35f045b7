// fovea encode: files in, rows out. Everything that can be refused is refused before the model is
// loaded; outputs become visible together at the end.
#include <algorithm>
#include <array>
#include <filesystem>
#include <iostream>
#include <optional>

#include "core/stopwatch.h"
#include "errors.h"
#include "flags/cache_size.h"
#include "flags/cli11.h"
#include "flags/flags.h"
#include "fovea/fovea.h"
#include "inputs.h"
#include "output_file.h"
#include "program.h"
#include "progress.h"
#include "report/encode_report.h"
#include "report/items_summary.h"
#include "report/report_json.h"
#include "report/text.h"
#include "shards/encode_shard.h"

namespace fovea::cli {
namespace {

struct EncodeFlags {
  EngineFlags engine;
  InputFlags inputs;
  ShardFlags shard;
  std::string output;
  std::string dtype = "float32";
  std::string on_error = "fail";
  std::string stats;
  std::string golden;
  std::optional<double> deadline;
  std::optional<bool> table;  ///< absent: of a few items
};

/// The results of a run, of which the table and the files are made.
struct EncodeRun {
  std::vector<Embedding> items;
  std::vector<std::optional<double>> differences;  ///< to the reference, one per item if asked for
  Stats stats;
  std::vector<ReplicaStats> replicas;
  std::string device;
  double load_ms = 0;
  double encode_ms = 0;
};

OnError on_error(const EncodeFlags& flags) {
  return flags.on_error == "skip" ? OnError::kSkip : OnError::kFail;
}

EncodeRun encode_all(const EncodeFlags& flags, std::span<const Input> inputs,
                     const CallBounds& bounds, Console& console) {
  const EngineOptions options = engine_options(flags.engine, console);
  check_limits(flags.engine, options);
  if (on_error(flags) == OnError::kFail) require_all(inputs);

  EncodeRun run;
  const Stopwatch load_watch;
  Progress loading(console, "loading " + flags.engine.model);
  Engine engine = Engine::load(flags.engine.model, options, bounds);
  run.load_ms = load_watch.elapsed_ms();
  check_item_options(engine, flags.inputs.items.mm_processor_kwargs);

  const Stopwatch encode_watch;
  Progress encoding(console, "encoding", std::ssize(inputs));
  const auto progress = [&](std::int64_t done, std::int64_t total) { encoding.set(done, total); };
  run.items = encode_inputs(engine, inputs,
                            {.dtype = row_dtype(flags.dtype),
                             .on_error = on_error(flags),
                             .progress = progress,
                             .bounds = bounds});
  run.encode_ms = encode_watch.elapsed_ms();
  run.stats = engine.stats();
  run.replicas = engine.replica_stats();
  run.device = engine.device();
  return run;
}

/// Reports skipped items; having nothing left is a failure.
void report_skipped(const std::vector<Embedding>& items, Console& console) {
  const Embedding* first_failed = nullptr;
  std::size_t failed = 0;
  for (std::size_t i = 0; i < items.size(); ++i) {
    if (!items[i].error) continue;
    console.warn("item_" + std::to_string(i) + " skipped: " + items[i].error->what());
    if (first_failed == nullptr) first_failed = &items[i];
    ++failed;
  }
  if (failed == items.size() && first_failed != nullptr) {
    throw Error(first_failed->error->code(),
                "none of " + counted(std::ssize(items), "item") +
                    " could be encoded; the first: " + first_failed->error->what());
  }
}

/// Rows that no language model can use point to weights or a processor file that do not fit.
void warn_of_rows_not_finite(const std::vector<Embedding>& items, Console& console) {
  for (std::size_t i = 0; i < items.size(); ++i) {
    if (items[i].is_finite()) continue;
    console.warn("item_" + std::to_string(i) + ": rows of " + items[i].name +
                 " hold values that are not finite");
  }
}

std::string stats_text(const EncodeFlags& flags, const EncodeRun& run) {
  JsonObject json = to_json(run.stats);
  std::int64_t rows = 0;
  std::int64_t failed = 0;
  for (const Embedding& item : run.items) {
    rows += item.rows;
    failed += item.error ? 1 : 0;
  }
  JsonArray replicas;
  for (const ReplicaStats& replica : run.replicas) replicas.add(to_json(replica));
  json.set("replicas", replicas);
  json.set("fovea_version", version());
  json.set("model", model_name(flags.engine.model));
  json.set("device", run.device);
  const MediaOptions& media = flags.engine.options.media;
  json.set("media_profile", value_name(media.profile));
  json.set("jpeg_scaling", media.jpeg_scaling);
  json.set("items", run.items.size());
  json.set("failed_items", failed);
  json.set("rows", rows);
  json.set("load_ms", run.load_ms);
  json.set("encode_ms", run.encode_ms);
  json.set("slowest_items", slowest_items(run.items));
  return json_text(json);
}

void write_outputs(const EncodeFlags& flags, const EncodeRun& run) {
  std::vector<AtomicFile> pending;
  if (!flags.stats.empty()) {
    pending.push_back(prepare_text_file(flags.stats, stats_text(flags, run)));
  }
  save_safetensors(flags.output, run.items, {{"fovea.model", model_name(flags.engine.model)}});
  for (AtomicFile& file : pending) file.commit();
}

void print_report(const EncodeFlags& flags, const EncodeRun& run) {
  std::int64_t width = 0;
  for (const Embedding& item : run.items) width = std::max(width, item.width);
  std::error_code ignored;
  const auto bytes = static_cast<std::size_t>(std::filesystem::file_size(flags.output, ignored));
  const bool has_line_each = flags.table.value_or(run.items.size() <= kMostItemLines);
  std::cout << (has_line_each ? items_table(run.items, run.differences)
                              : items_summary(run.items, run.differences))
            << "\n"
            << "device  " << run.device << "\n"
            << "graphs  " << graphs_text(run.stats) << "\n"
            << replica_lines(run.replicas) << cache_line(run.stats.encoder_cache) << "time    load "
            << fixed(run.load_ms, 1) << " ms, all items " << fixed(run.encode_ms, 1) << " ms\n"
            << "output  " << flags.output << ", rows of " << width << " x " << flags.dtype << ", "
            << bytes_text(bytes) << "\n";
}

/// The reference in `folder`. @throws Error(kNotFound) if there is none.
std::string golden_file(const std::string& folder) {
  const std::filesystem::path file = std::filesystem::path(folder) / "golden.safetensors";
  std::error_code ignored;
  if (!std::filesystem::exists(file, ignored)) {
    throw Error(ErrorCode::kNotFound, file.string() + ": no such file");
  }
  return file.string();
}

int run_encode(const EncodeFlags& flags, Console& console) {
  const CallBounds bounds = bounds_from_now(flags.deadline);
  const ItemDefaults defaults = item_defaults(flags.inputs, flags.engine.options.media);
  if (flags.shard.shard) {
    return encode_shard({.engine = flags.engine,
                         .inputs = flags.inputs.in_order,
                         .items = defaults,
                         .folder = flags.output,
                         .dtype = flags.dtype,
                         .flags = flags.shard,
                         .bounds = bounds,
                         .table = flags.table.value_or(true)},
                        console);
  }
  const std::vector<Input> inputs = expand_inputs(flags.inputs.in_order, defaults, bounds);
  std::vector<std::string> files = files_read(flags.engine.model, flags.inputs.in_order, inputs);
  if (!flags.golden.empty()) files.push_back(golden_file(flags.golden));
  check_output_paths({flags.output, flags.stats}, files);
  EncodeRun run = encode_all(flags, inputs, bounds, console);
  report_skipped(run.items, console);
  warn_of_rows_not_finite(run.items, console);
  if (!flags.golden.empty()) {
    for (const Embedding& item : run.items) {
      run.differences.push_back(golden_difference(item, flags.golden));
    }
  }
  write_outputs(flags, run);
  if (flags.table.value_or(true)) print_report(flags, run);
  return kExitOk;
}

void add_output_flags(CLI::App& verb, EncodeFlags& flags) {
  add_output_file(verb, "-o,--output", flags.output,
                  "Safetensors file to write the rows to; with --shard a directory")
      ->required();
  add_row_dtype(verb, flags.dtype, "Element type of the rows in the file")->group(kOutputGroup);
  add_choice(verb, "--on-error", flags.on_error, {"fail", "skip"},
             "Whether an unreadable item ends the run or is skipped with a warning")
      ->group(kOutputGroup);
  add_output_file(verb, "--stats", flags.stats,
                  "Write counters of graphs and padding, and times of stages, as JSON");
  verb.add_option("--golden", flags.golden,
                  "Compare with the reference rows in DIR/golden.safetensors (relative L2)")
      ->type_name("DIR")
      ->check(named("folder"))
      ->group(kOutputGroup);
  verb.add_flag_function(
          "--table,!--no-table", [&flags](std::int64_t count) { flags.table = count > 0; },
          "Print a line for each item, or nothing (default: of more than " +
              std::to_string(kMostItemLines) + " items a summary)")
      ->group(kOutputGroup);
}

void add_flags(CLI::App& verb, EncodeFlags& flags) {
  add_model(verb, flags.engine);
  add_input_flags(verb, flags.inputs);
  add_output_flags(verb, flags);
  static constexpr std::array kOfOneFile{"--on-error", "--stats", "--golden"};
  add_shard_flags(verb, flags.shard, kOfOneFile);
  add_deadline(verb, flags.deadline);
  add_threads(verb, flags.engine);
  add_decode_processes(verb, flags.engine);
  add_encoder_cache_size(verb, flags.engine.options);
  flags.engine.options.cache_dir = user_cache_dir();
  add_engine_flags(verb, flags.engine);
}

constexpr VerbText kEncodeText{
    .name = "encode",
    .summary = "Encode images and videos into rows",
    .footer =
        R"(Items are numbered in command-line order, images and videos together; the file holds
item_<i> [rows, width] and item_<i>.grid_thw [3] for each.

Examples:
  fovea encode ./Qwen3-VL photo.jpg scans/ -o rows.safetensors
  fovea encode ./Qwen3-VL a.png --video frames/ b.png -o rows.safetensors --dtype bfloat16
  fovea encode ./Qwen3-VL --pixel-values processed.safetensors -o rows.safetensors
  fovea encode ./Qwen3-VL '*.png' -o rows.safetensors --stats stats.json --on-error skip
  fovea encode ./Qwen3-VL @list.txt --shard 3/16 --resume -o rows/)",
};

}  // namespace

void add_encode(CLI::App& app, Program& program) {
  add_verb(app, program, kEncodeText, add_flags, run_encode);
}

}  // namespace fovea::cli
