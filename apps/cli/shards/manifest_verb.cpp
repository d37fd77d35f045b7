// fovea manifest check|merge: what fovea encode --shard has made, as a whole.
#include <algorithm>
#include <filesystem>
#include <iostream>
#include <vector>

#include "errors.h"
#include "flags/cli11.h"
#include "fovea/error.h"
#include "output_file.h"
#include "program.h"
#include "progress.h"
#include "report/table.h"
#include "report/text.h"
#include "shards/manifest_check.h"

namespace fovea::cli {
namespace {

struct ManifestFlags {
  std::string folder;
  std::string output;
};

FolderState checked(const std::string& folder, Console& console) {
  const Progress progress(console, "checking " + folder);
  return check_manifests(folder);
}

void print_table(const FolderState& state) {
  using enum Table::Align;
  Table table({{"shard"}, {"items"}, {"failed"}, {"parts"}, {"size"}, {"result", kLeft}});
  ShardState sum;
  const auto row = [](std::string name, const ShardState& shard, std::string result) {
    return std::vector<std::string>{std::move(name),
                                    std::to_string(shard.items),
                                    std::to_string(shard.failed),
                                    std::to_string(shard.parts),
                                    bytes_text(static_cast<std::size_t>(shard.bytes)),
                                    std::move(result)};
  };
  for (const ShardState& shard : state.shards) {
    table.add_row(row(std::to_string(shard.shard.index) + "/" + std::to_string(shard.shard.count),
                      shard, shard.problems == 0 ? "ok" : counted(shard.problems, "problem")));
    sum.items += shard.items;
    sum.failed += shard.failed;
    sum.parts += shard.parts;
    sum.bytes += shard.bytes;
  }
  table.add_rule();
  table.add_row(row("all", sum, state.problem_count == 0 ? "ok" : "WRONG"));
  std::cout << table.text();
}

int run_check(const ManifestFlags& flags, Console& console) {
  const FolderState state = checked(flags.folder, console);
  print_table(state);
  for (const std::string& problem : state.problems) console.warn(problem);
  if (state.problem_count == 0) return kExitOk;
  console.error(flags.folder + ": " + counted(state.problem_count, "problem"));
  return kExitFailure;
}

/// The manifests and parts of the shards in a folder.
std::vector<std::string> files_of_shards(const std::string& folder, const FolderState& state) {
  std::vector<std::string> files;
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator(folder, ignored)) {
    const std::string name = entry.path().filename().string();
    const bool is_part = std::ranges::any_of(state.shards, [&](const ShardState& shard) {
      return part_number(shard.shard, name).has_value();
    });
    if (is_part || shard_of_manifest(name)) files.push_back(entry.path().string());
  }
  return files;
}

int run_merge(const ManifestFlags& flags, Console& console) {
  const FolderState state = checked(flags.folder, console);
  check_output_paths({flags.output}, files_of_shards(flags.folder, state));
  if (state.problem_count > 0) {
    throw Error(ErrorCode::kCorruptData,
                flags.folder + ": " + counted(state.problem_count, "problem") + ", the first: " +
                    state.problems.front() + " (fovea manifest check lists them)");
  }
  const std::int64_t items = merge_manifests(flags.folder, state, flags.output);
  std::cout << "output  " << flags.output << ", " << counted(items, "item") << " of "
            << counted(std::ssize(state.shards), "shard") << "\n";
  return kExitOk;
}

void add_folder(CLI::App& verb, ManifestFlags& flags) {
  verb.add_option("DIR", flags.folder, "Output directory of fovea encode --shard")
      ->required()
      ->type_name("");
}

void add_merge_flags(CLI::App& verb, ManifestFlags& flags) {
  add_folder(verb, flags);
  add_output_file(verb, "-o,--output", flags.output, "File to write, in JSON lines")->required();
}

constexpr VerbText kCheck{
    .name = "check",
    .summary = "Check that all shards are there, whole, and each item once",
    .footer = R"(Exit code 1 if something is wrong.

Example:
  fovea manifest check rows/)",
};

constexpr VerbText kMerge{
    .name = "merge",
    .summary = "Write one manifest of all shards, sorted by path, after the same check",
    .footer = R"(Example:
  fovea manifest merge rows/ -o rows/manifest.jsonl)",
};

}  // namespace

void add_manifest(CLI::App& app, Program& program) {
  CLI::App* verb = app.add_subcommand("manifest", "Check or merge what encode --shard has written");
  verb->require_subcommand(1);
  verb->footer("Example:\n  fovea manifest check rows/");
  add_verb(*verb, program, kCheck, add_folder, run_check);
  add_verb(*verb, program, kMerge, add_merge_flags, run_merge);
  for (CLI::App* part : verb->get_subcommands({})) part->group("Verbs");
}

}  // namespace fovea::cli
