// fovea env and fovea version: what this program is and what it found on this machine.
#include <iostream>
#include <memory>

#include "errors.h"
#include "flags.h"
#include "fovea/diagnostics.h"
#include "fovea/version.h"
#include "report_json.h"
#include "table.h"
#include "text.h"

namespace fovea::cli {
namespace {

int run_env(bool json) {
  using enum Table::Align;
  const std::vector<EnvironmentFact> facts = describe_environment();
  if (json) {
    nlohmann::ordered_json object = nlohmann::ordered_json::object();
    for (const auto& [name, value] : facts) object[name] = value;
    std::cout << json_text(object);
    return kExitOk;
  }
  Table table({{"what", kLeft}, {"found", kLeft}});
  for (const auto& [name, value] : facts) table.add_row({name, one_line(value)});
  std::cout << table.text();
  return kExitOk;
}

}  // namespace

void add_env(CLI::App& app, Program& program) {
  CLI::App* verb =
      app.add_subcommand("env", "Show versions, devices and plugins found, or why not");
  auto json = std::make_shared<bool>(false);
  verb->add_flag("--json", *json, "Print JSON instead of a table");
  add_console_flags(*verb, program);
  verb->footer("Example:\n  fovea env --json > report.json");
  verb->callback([json, &program] { program.action = [json] { return run_env(*json); }; });
}

void add_version(CLI::App& app, Program& program) {
  CLI::App* verb = app.add_subcommand("version", "Print the version");
  verb->callback([&program] {
    program.action = [] {
      std::cout << "fovea " << version() << "\n";
      return kExitOk;
    };
  });
}

}  // namespace fovea::cli
