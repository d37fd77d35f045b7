// Flags that the verbs share, and their translation into EngineOptions.
#include "flags/flags.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include <string>
#include "errors.h"
#include "flags/cli11.h"
#include "flags/json_text.h"
#include "flags/parse.h"
#include "fovea/option_table.h"
#include "report/text.h"

namespace fovea::cli {
namespace {

/// Options whose flags only some verbs have.
const GivenOptions kOfSomeVerbs{
    "threads",     "decode_processes",  "encoder_cache_bytes", "encoder_device_cache_size",
    "shared_rows", "shared_rows_bytes", "shared_rows_seconds"};

bool is_device(std::string_view name) {
  constexpr std::string_view kCuda = "cuda:";
  if (name == "auto" || name == "cpu" || name == "cuda") return true;
  constexpr std::size_t kMaxIndexDigits = 4;
  return name.starts_with(kCuda) && name.size() > kCuda.size() &&
         name.size() <= kCuda.size() + kMaxIndexDigits &&
         std::all_of(name.begin() + kCuda.size(), name.end(),
                     [](char c) { return c >= '0' && c <= '9'; });
}

/// Complains about a list that no machine can have, and drops blanks from others.
std::string complaint_about_devices(std::string& list) {
  constexpr std::size_t kMaxDevices = 64;
  const std::vector<std::string> names = split_commas(list);
  const std::string got = ", got \"" + shown(list) + "\"";
  if (!std::ranges::all_of(names, is_device)) {
    return "expected auto, cpu, cuda or cuda:<index>" + got;
  }
  if (names.size() > kMaxDevices) return "expected at most 64 devices" + got;
  const bool cpus = std::ranges::all_of(names, [](const auto& name) { return name == "cpu"; });
  const bool gpus =
      std::ranges::all_of(names, [](const auto& name) { return name.starts_with("cuda"); });
  if (names.size() > 1 && !cpus && !gpus) return "expected all cpu or all cuda" + got;
  list = join(names, ",");
  return "";
}

/// Flags that take other words than the values of their options.
void add_device_flags(CLI::App& verb, EngineFlags& flags) {
  EngineOptions& options = flags.options;
  add_own_flag(
      verb, find_option(&EngineOptions::device),
      [&options](const std::string& text, const std::string& /*flag*/) { options.device = text; })
      ->type_name("auto|cpu|cuda[:i],...")
      ->transform(check(complaint_about_devices))
      ->default_str(options.device);
  add_own_flag(verb, find_option(&EngineOptions::dummy_weights),
               [&options](const std::string& text, const std::string& /*flag*/) {
                 options.dummy_weights = text == "dummy";
               })
      ->type_name("auto|safetensors|dummy")
      ->check(one_of("auto, safetensors, dummy"))
      ->default_str("auto");
  add_own_flag(verb, find_option(&EngineOptions::cache_dir),
               [&options](const std::string& text, const std::string& /*flag*/) {
                 options.cache_dir = text == "none" ? "" : text;
               })
      ->type_name("DIR|none")
      ->default_str(options.cache_dir.empty() ? "none" : options.cache_dir);
}

void add_graph_flags(CLI::App& verb, EngineFlags& flags) {
  constexpr auto kGraphs = find_option(&GraphOptions::cudagraph_mm_encoder);
  GraphOptions& graphs = flags.options.graphs;
  verb.add_flag_callback(
          flag_of(kGraphs), [&graphs] { graphs.cudagraph_mm_encoder = false; },
          std::string(kGraphs.help))
      ->group(std::string(kGraphHeading));
  add_own_flag(verb, find_option(&GraphOptions::encoder_cudagraph_token_budgets),
               [&graphs](const std::string& text, const std::string& flag) {
                 read_token_budgets(text, flag, graphs);
               })
      ->type_name("N,N,...|JSON");
}

/// Refuses flags about media that contradict each other.
void check_media(const EngineFlags& flags) {
  const MediaOptions& media = flags.options.media;
  const bool has_background =
      media.profile == MediaProfile::kVllm || media.profile == MediaProfile::kVllm023;
  if (flags.given.contains("rgba_background_color") && !has_background) {
    throw UsageError("--rgba-background-color: --media-profile " +
                     std::string(value_name(media.profile)) + " ignores transparency");
  }
  const std::size_t most = media.limits.max_decode_bytes;
  if (most > 0 && most < media.limits.max_item_bytes) {
    throw UsageError("--max-decode-bytes: expected at least --max-item-bytes, " +
                     std::to_string(media.limits.max_item_bytes) + ", got " + std::to_string(most));
  }
}

constexpr const char* kCallDeadlineFlag = "--deadline";

double parse_seconds(const std::string& text) {
  const double seconds = parse_number(text, kCallDeadlineFlag);
  if (seconds > 0) return seconds;
  throw UsageError(std::string(kCallDeadlineFlag) + ": expected a number above 0, got \"" + text +
                   "\"");
}

}  // namespace

void add_model(CLI::App& verb, EngineFlags& flags) {
  verb.add_option("MODEL,--model", flags.model,
                  "Directory with config.json, preprocessor_config.json and *.safetensors, or a "
                  "name on the hub that is in its cache")
      ->type_name("")
      ->required();
  verb.add_flag("--download", flags.download,
                "Get MODEL, a name on the hub, first, or what is new of it");
  verb.add_option("--revision", flags.revision, "Branch, tag or commit of MODEL, a name on the hub")
      ->type_name("REVISION")
      ->capture_default_str();
}

std::string model_name(const std::string& directory) {
  constexpr std::string_view kSeparator = "--";
  const auto path = std::filesystem::absolute(directory + "/.").lexically_normal().parent_path();
  const std::string repository = path.parent_path().parent_path().filename();
  const bool is_snapshot =
      path.parent_path().filename() == "snapshots" && repository.starts_with("models--");
  if (!is_snapshot) return path.filename();
  return repository.substr(repository.rfind(kSeparator) + kSeparator.size());
}

void add_threads(CLI::App& verb, EngineFlags& flags) {
  add_option_flag(verb, find_option(&EngineOptions::num_threads), flags.options.num_threads,
                  flags.given);
}

void add_decode_processes(CLI::App& verb, EngineFlags& flags) {
  add_option_flag(verb, find_option(&EngineOptions::decode_processes),
                  flags.options.decode_processes, flags.given);
}

std::string user_cache_dir() {
  const auto absolute = [](const char* variable) {
    const char* const value = std::getenv(variable);
    return std::string(value != nullptr && value[0] == '/' ? value : "");
  };
  if (const std::string caches = absolute("XDG_CACHE_HOME"); !caches.empty()) {
    return caches + "/fovea";
  }
  const std::string home = absolute("HOME");
  return home.empty() ? "" : home + "/.cache/fovea";
}

void add_engine_flags(CLI::App& verb, EngineFlags& flags) {
  add_device_flags(verb, flags);
  add_graph_flags(verb, flags);
  add_option_flags(verb, flags.options, flags.given, kOfSomeVerbs);
}

CLI::Option* add_row_dtype(CLI::App& verb, std::string& value, const std::string& description) {
  const auto& names = kValueNames<RowDType>;
  return add_choice(verb, "--dtype", value, {names.begin(), names.end()}, description)
      ->transform(check([](std::string& text) {
        text = full_name(text, kValueAliases<RowDType>);
        return std::string();
      }));
}

RowDType row_dtype(const std::string& value) {
  return value_named<RowDType>(value).value_or(RowDType::kFloat32);
}

EngineOptions engine_options(const EngineFlags& flags, Console& console) {
  check_media(flags);
  EngineOptions options = flags.options;
  options.log = &console;
  return options;
}

void add_deadline(CLI::App& verb, std::optional<double>& seconds) {
  verb.add_option_function<std::string>(
          kCallDeadlineFlag, [&seconds](const std::string& text) { seconds = parse_seconds(text); },
          "Give up with exit code 1 if the rows are not there after so many seconds, loading "
          "included (default: never)")
      ->type_name("SECONDS");
}

CallBounds bounds_from_now(const std::optional<double>& seconds) {
  constexpr double kLongest = 1e9;  // thirty years: more would overflow the clock
  if (!seconds) return {};
  const std::chrono::duration<double> time(std::min(*seconds, kLongest));
  return {.deadline = std::chrono::steady_clock::now() +
                      std::chrono::duration_cast<std::chrono::steady_clock::duration>(time)};
}

}  // namespace fovea::cli
