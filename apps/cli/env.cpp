// fovea env and fovea version: what this program is and what it found on this machine.
#include <iostream>

#include "errors.h"
#include "fovea/diagnostics.h"
#include "fovea/version.h"
#include "program.h"
#include "report/report_json.h"
#include "report/table.h"
#include "report/text.h"

namespace fovea::cli {
namespace {

struct EnvFlags {
  bool json = false;
};

int run_env(const EnvFlags& flags, Console& /*console*/) {
  using enum Table::Align;
  const std::vector<EnvironmentFact> facts = describe_environment();
  if (flags.json) {
    std::cout << json_text(facts);
    return kExitOk;
  }
  Table table({{"what", kLeft}, {"found", kLeft}});
  for (const auto& [name, value] : facts) table.add_row({name, one_line(value)});
  std::cout << table.text(table_columns());
  return kExitOk;
}

void add_flags(CLI::App& verb, EnvFlags& flags) {
  verb.add_flag("--json", flags.json, "Print JSON instead of a table");
}

constexpr VerbText kEnvText{
    .name = "env",
    .summary = "Show versions, devices and plugins, and why one was not found",
    .footer = "Example:\n  fovea env --json > report.json",
};

}  // namespace

void add_env(CLI::App& app, Program& program) {
  add_verb(app, program, kEnvText, add_flags, run_env);
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
