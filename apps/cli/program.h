#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <string>
#include <vector>

#include "console.h"

namespace fovea::cli {

/// What the verbs share: where messages go and what to run once the command line is understood.
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
void add_plan(CLI::App& app, Program& program);
void add_inspect(CLI::App& app, Program& program);
void add_verify(CLI::App& app, Program& program);
void add_serve(CLI::App& app, Program& program);
void add_bench(CLI::App& app, Program& program);
void add_env(CLI::App& app, Program& program);
void add_version(CLI::App& app, Program& program);

}  // namespace fovea::cli
