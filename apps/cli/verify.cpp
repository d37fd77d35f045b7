// fovea verify: the engine checks itself on a checkpoint.
#include <iostream>
#include <optional>

#include "errors.h"
#include "flags/cli11.h"
#include "flags/flags.h"
#include "fovea/diagnostics.h"
#include "fovea/engine.h"
#include "program.h"
#include "progress.h"
#include "report/report_json.h"
#include "report/table.h"
#include "report/text.h"

namespace fovea::cli {
namespace {

struct VerifyFlags {
  EngineFlags engine;
  std::string golden;
  std::optional<double> deadline;
  bool json = false;
};

void print_checks(const std::vector<Check>& checks, bool json) {
  using enum Table::Align;
  if (json) {
    JsonArray list;
    for (const Check& check : checks) {
      list.add(JsonObject{{"name", check.name},
                          {"passed", check.passed},
                          {"skipped", check.skipped},
                          {"detail", check.detail}});
    }
    std::cout << json_text(list);
    return;
  }
  Table table({{"check", kLeft}, {"result", kLeft}, {"detail", kLeft}});
  for (const Check& check : checks) {
    const char* const result = check.skipped ? "skipped" : check.passed ? "ok" : "FAILED";
    table.add_row({one_line(check.name), result, one_line(check.detail)});
  }
  std::cout << table.text(table_columns());
}

int run_verify(const VerifyFlags& flags, Console& console) {
  const CallBounds bounds = bounds_from_now(flags.deadline);
  EngineOptions options = engine_options(flags.engine, console);
  check_limits(flags.engine, options);
  options.measure_graphs = false;  // a graph that is slower than eager execution is checked as well
  std::vector<Check> checks;
  {
    const Progress progress(console, "checking " + flags.engine.model);
    Engine engine = Engine::load(flags.engine.model, options, bounds);
    checks = verify(engine, flags.golden, bounds);
  }
  print_checks(checks, flags.json);
  std::vector<std::string> failed;
  for (const Check& check : checks) {
    if (!check.passed) failed.push_back(check.name);
  }
  if (failed.empty()) return kExitOk;
  console.error("failed checks: " + join(failed, ", "));
  return kExitFailure;
}

void add_flags(CLI::App& verb, VerifyFlags& flags) {
  add_model(verb, flags.engine);
  verb.add_option("--golden", flags.golden,
                  "Also compare with reference rows: directory with golden.safetensors and images/")
      ->type_name("DIR")
      ->check(named("folder"));
  verb.add_flag("--json", flags.json, "Print JSON instead of a table");
  add_deadline(verb, flags.deadline);
  add_threads(verb, flags.engine);
  add_decode_processes(verb, flags.engine);
  flags.engine.options.cache_dir = user_cache_dir();
  add_engine_flags(verb, flags.engine);
}

constexpr VerbText kVerifyText{
    .name = "verify",
    .summary = "Check that replay, batching and order do not change the rows",
    .footer = R"(Exit code 1 if a check fails.

Examples:
  fovea verify ./Qwen3-VL
  fovea verify tests/golden/qwen3_vl --golden tests/golden/qwen3_vl)",
};

}  // namespace

void add_verify(CLI::App& app, Program& program) {
  add_verb(app, program, kVerifyText, add_flags, run_verify);
}

}  // namespace fovea::cli
