// Flags of every verb.
#include "verb.h"

namespace fovea::cli {

LogLevel level_of(const std::string& name) {
  if (name == "trace" || name == "debug") return LogLevel::kDebug;
  if (name == "info") return LogLevel::kInfo;
  return name == "warning" ? LogLevel::kWarning : LogLevel::kError;
}

void add_console_flags(CLI::App& verb, Program& program) {
  verb.add_flag_callback(
          "-q,--quiet", [&program] { program.console.be_quiet(); },
          "No progress and no log lines on stderr")
      ->group("Messages");
  verb.add_option_function<std::string>(
          "--log-level",
          [&program](const std::string& name) { program.console.set_level(level_of(name)); },
          "Show log lines of the library on stderr from this level on")
      ->check(CLI::IsMember({"trace", "debug", "info", "warning", "error"}).description(""))
      ->type_name("trace|debug|info|warning|error")
      ->default_str("warning")
      ->group("Messages");
}

}  // namespace fovea::cli
