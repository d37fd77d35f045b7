#pragma once

#include <CLI/CLI.hpp>
#include <string>

#include <optional>
#include "console.h"
#include "flags/option_flags.h"
#include "fovea/call_bounds.h"
#include "fovea/hub.h"
#include "fovea/options.h"

namespace fovea::cli {

/// Flags of every verb that looks at a model, as the user gave them.
struct EngineFlags {
  std::string model;  ///< as given; its directory after find_model()
  bool download = false;
  std::string revision = kMainRevision;
  EngineOptions options;  ///< what flags set
  GivenOptions given;     ///< which of them flags have set
};

/// Adds MODEL, which may also be given as --model: a directory, or a name on the hub, for
/// find_model(); --download and --revision. Must come before the other positionals of a verb.
void add_model(CLI::App& verb, EngineFlags& flags);

/// Name of the model in metadata and for clients: the last part of its directory, so that a file
/// does not depend on where it was made; of a snapshot in the hub cache that of its name there.
[[nodiscard]] std::string model_name(const std::string& directory);

/// Adds --threads N. A verb that compares numbers of threads has a flag of that name of its own.
void add_threads(CLI::App& verb, EngineFlags& flags);

/// Adds --decode-processes N, to verbs that decode files.
void add_decode_processes(CLI::App& verb, EngineFlags& flags);

/// Directory for files that can be made again: $XDG_CACHE_HOME/fovea, or else $HOME/.cache/fovea,
/// if the variable holds an absolute path; empty without such a variable. The default of encode
/// and verify; benchmarks measure at every start. Source: XDG Base Directory Specification 0.8.
[[nodiscard]] std::string user_cache_dir();

/// Adds the flags of all options but those above, and those of caches.
void add_engine_flags(CLI::App& verb, EngineFlags& flags);

/// Adds --dtype, which row_dtype() reads; `value` becomes the full name of an alias.
CLI::Option* add_row_dtype(CLI::App& verb, std::string& value, const std::string& description);
[[nodiscard]] RowDType row_dtype(const std::string& value);

/// The options that flags have set, with `console` for log lines. Whether the model can work with
/// them is for check_limits() to say.
/// @throws UsageError for a background that the profile does not use, and if all decoding threads
/// together have less memory than one item.
[[nodiscard]] EngineOptions engine_options(const EngineFlags& flags, Console& console);

/// Adds --deadline SECONDS to a verb that loads and runs a model.
void add_deadline(CLI::App& verb, std::optional<double>& seconds);

/// Bounds of all calls of a verb that begins now; none without the flag.
[[nodiscard]] CallBounds bounds_from_now(const std::optional<double>& seconds);

/// Checks that the model of `flags` can work with `options`, which were made of them, before
/// weights are loaded. Plans with the model, which reads the JSON files in its directory. Errors of
/// the model itself are reported when it is loaded, not here.
/// @throws UsageError naming the flag without which the options would do.
void check_limits(const EngineFlags& flags, EngineOptions options);

}  // namespace fovea::cli
