#pragma once

#include <memory>

#include "program.h"

namespace fovea::cli {

/// What a verb is called, and what --help says around its flags.
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
/// line has been parsed, and returns the exit code.
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
    program.action = [flags, run, &program] { return run(*flags, program.console); };
  });
}

}  // namespace fovea::cli
