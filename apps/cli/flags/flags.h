#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "console.h"
#include "flags/cache_size.h"
#include "flags/media_flags.h"
#include "flags/vllm_flags.h"
#include "fovea/options.h"

namespace fovea::cli {

/// Flags of every verb that looks at a model, as the user gave them.
struct EngineFlags {
  std::string model;
  std::string device = "auto";
  std::int64_t data_parallel_size = 0;  ///< 0: one replica per device named
  std::int64_t threads = 0;             ///< 0: all
  std::int64_t decode_processes = 0;    ///< 0: decode in this process
  CacheSize encoder_cache;
  std::int64_t encoder_device_cache_bytes = 0;
  std::string load_format = "auto";
  std::optional<std::int64_t> seed;
  MediaFlags media;
  bool enforce_eager = false;
  std::vector<std::int64_t> token_budgets;
  std::string path_token_budgets;                    ///< JSON, instead of the list; or empty
  std::optional<std::int64_t> max_items_per_batch;   ///< absent or 0: inferred
  std::optional<std::int64_t> max_frames_per_batch;  ///< absent: inferred
  std::int64_t max_num_batched_tokens = EngineOptions{}.max_num_batched_tokens;
  std::string packing = "greedy";
  std::string attention = "auto";
  std::string quantization = "none";
  std::string dtype_compute = "auto";
  std::string gpu_wait = "auto";
  bool measure_graphs = true;
  std::string cache_dir = "none";  ///< or a folder
  std::string compilation_config;
  VllmFlags vllm;
};

/// Adds MODEL, which may also be given as --model: a directory, or a name on the hub that is in the
/// cache of its libraries. Must come before the other positionals of a verb.
void add_model(CLI::App& verb, EngineFlags& flags);

/// Name of the model in metadata: the last part of its directory, so that a file does not depend on
/// where it was made.
[[nodiscard]] std::string model_name(const std::string& directory);

/// Adds --threads N. A verb that compares numbers of threads has a flag of that name of its own.
void add_threads(CLI::App& verb, EngineFlags& flags);

/// Adds --decode-processes N, to verbs that decode files.
void add_decode_processes(CLI::App& verb, EngineFlags& flags);

/// Directory for files that can be made again: $XDG_CACHE_HOME/fovea, or else $HOME/.cache/fovea,
/// if the variable holds an absolute path; "none" without such a variable. The default of encode
/// and verify; benchmarks measure at every start. Source: XDG Base Directory Specification 0.8.
[[nodiscard]] std::string user_cache_dir();

/// Adds the flags for device, graphs and images.
void add_engine_flags(CLI::App& verb, EngineFlags& flags);

/// Adds --dtype, which row_dtype() reads.
CLI::Option* add_row_dtype(CLI::App& verb, std::string& value, const std::string& description);
[[nodiscard]] RowDType row_dtype(const std::string& value);

/// Translates flags into options; flags win over --compilation-config. Warns on `console` about
/// keys that are ignored. Whether the model can work with them is for check_limits() to say.
/// @throws UsageError as apply_compilation_config() and media_options() do, and for numbers that
/// are too large.
[[nodiscard]] EngineOptions engine_options(const EngineFlags& flags, Console& console);

}  // namespace fovea::cli
