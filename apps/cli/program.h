#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <string>
#include <vector>

#include <memory>
#include "console.h"
#include "flags/hub_model.h"

namespace fovea::cli {

/// The verbs share where messages go, and set what runs once the command line is understood.
struct Program {
  Console console;
  std::function<int()> action;  ///< set by the chosen verb; returns the exit code
};

/// Runs the program with the arguments after its name and returns the exit code. Results go to
/// stdout, everything else to stderr; no exception leaves.
[[nodiscard]] int run_program(std::vector<std::string> arguments);

/// Each adds one verb with its flags, help and action.
void add_encode(CLI::App& app, Program& program);
void add_manifest(CLI::App& app, Program& program);
void add_pull(CLI::App& app, Program& program);
void add_plan(CLI::App& app, Program& program);
void add_inspect(CLI::App& app, Program& program);
void add_verify(CLI::App& app, Program& program);
void add_serve(CLI::App& app, Program& program);
void add_proxy(CLI::App& app, Program& program);
void add_bench(CLI::App& app, Program& program);
void add_env(CLI::App& app, Program& program);
void add_version(CLI::App& app, Program& program);

/// The name of a verb, and the text that --help puts around its flags.
struct VerbText {
  const char* name;
  const char* summary;  ///< the line beside the name
  const char* footer;   ///< remarks and examples below the flags
};

/// The level of the library for a name of --log-level; it has none below kDebug.
[[nodiscard]] LogLevel level_of(const std::string& name);

/// Adds --quiet and --log-level, which add_verb() does for its verb.
void add_console_flags(CLI::App& verb, Program& program);

/// Adds a verb to `parent`. `add_flags` adds flags that fill a `Flags`, which lives as long as the
/// parser; --quiet and --log-level follow them. `run` executes the verb after the whole command
/// line has been parsed, and returns the exit code. Of a verb with EngineFlags `engine`, the model
/// has been found by then (find_model()).
template <typename Flags>
void add_verb(CLI::App& parent, Program& program, const VerbText& text,
              void (*add_flags)(CLI::App& verb, Flags& flags),
              int (*run)(const Flags& flags, Console& console)) {
  CLI::App* verb = parent.add_subcommand(text.name, text.summary);
  verb->footer(text.footer);
  const auto flags = std::make_shared<Flags>();
  add_flags(*verb, *flags);
  add_console_flags(*verb, program);
  verb->callback([flags, run, &program] {
    program.action = [flags, run, &program] {
      if constexpr (requires { flags->engine.model; }) find_model(flags->engine, program.console);
      return run(*flags, program.console);
    };
  });
}

}  // namespace fovea::cli
