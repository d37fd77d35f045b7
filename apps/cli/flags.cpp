// Flags that the verbs share, and their translation into EngineOptions.
#include "flags.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <memory>
#include <nlohmann/json.hpp>

#include "errors.h"
#include "fovea/engine.h"
#include "parse.h"
#include "report/text.h"

namespace fovea::cli {
namespace {

constexpr const char* kDeviceGroup = "Model and device";
constexpr const char* kGraphGroup = "Graphs";
constexpr const char* kPictureGroup = "Pictures";

/// A check without a description, so that it does not end up in the type shown by --help.
CLI::Validator check(std::function<std::string(std::string&)> function) {
  return CLI::Validator(std::move(function), "");
}

bool is_device(std::string_view name) {
  constexpr std::string_view kCuda = "cuda:";
  if (name == "auto" || name == "cpu" || name == "cuda") return true;
  return name.starts_with(kCuda) && name.size() > kCuda.size() &&
         std::all_of(name.begin() + kCuda.size(), name.end(),
                     [](char c) { return c >= '0' && c <= '9'; });
}

/// Complains about a list with something else than devices in it, and drops blanks from others.
std::string complaint_about_devices(std::string& list) {
  const std::vector<std::string> names = split_commas(list);
  if (!std::all_of(names.begin(), names.end(), is_device)) {
    return "expected auto, cpu, cuda or cuda:<index>, got \"" + list + "\"";
  }
  list = join(names, ",");
  return "";
}

void add_device_flags(CLI::App& verb, EngineFlags& flags) {
  verb.add_option("--device", flags.device,
                  "Where the tower runs; several devices share the items of a batch")
      ->type_name("auto|cpu|cuda[:i],...")
      ->transform(check(complaint_about_devices))
      ->capture_default_str()
      ->group(kDeviceGroup);
  add_positive(verb, "--data-parallel-size", flags.data_parallel_size,
               "Replicas of the tower: the first N GPUs, or N parts of the CPU (default: one per "
               "device named)")
      ->group(kDeviceGroup);
  add_choice(
      verb, "--mm-encoder-attn-backend", flags.attention, {"auto", "portable", "hopper", "cudnn"},
      "Attention kernel of a GPU; auto takes the faster of portable and hopper for each size")
      ->group(kDeviceGroup);
  add_choice(verb, "--load-format", flags.load_format, {"auto", "safetensors", "dummy"},
             "dummy needs config.json only and fills the tower with seeded random weights")
      ->group(kDeviceGroup);
  verb.add_option(
          "--cache-dir", flags.cache_dir,
          "Folder that keeps what is measured on a GPU for the next start; none keeps nothing")
      ->type_name("DIR|none")
      ->capture_default_str()
      ->group(kDeviceGroup);
  add_count(verb, "--seed", flags.seed, "Seed of dummy weights (default: 0)")->group(kDeviceGroup);
}

void add_graph_flags(CLI::App& verb, EngineFlags& flags) {
  verb.add_flag("--enforce-eager", flags.enforce_eager, "Use no graphs")->group(kGraphGroup);
  add_positive_list(verb, "--token-budgets", flags.token_budgets,
                    "Capture one graph per budget (default: inferred from the model)")
      ->group(kGraphGroup);
  add_positive(verb, "--max-items-per-batch", flags.max_items_per_batch,
               "Most items in one replay (default: inferred)")
      ->group(kGraphGroup);
  add_count(verb, "--max-frames-per-batch", flags.max_frames_per_batch,
            "Most attention sequences in one replay, one per picture and per temporal patch of a "
            "video; 0 keeps videos eager (default: inferred)")
      ->group(kGraphGroup);
  add_positive(verb, "--max-num-batched-tokens", flags.max_num_batched_tokens,
               "Upper end of inferred token budgets")
      ->group(kGraphGroup);
  add_choice(verb, "--packing", flags.packing, {"greedy", "cost"},
             "How items share budgets: smallest first, or least total cost")
      ->group(kGraphGroup);
  verb.add_flag(
          "--measure-graphs,!--no-measure-graphs", flags.measure_graphs,
          "On a GPU: run eagerly what was measured to be faster without a graph (default: on)")
      ->group(kGraphGroup);
  verb.add_option("--compilation-config", flags.compilation_config,
                  "The same settings as vLLM spells them; the flags above win")
      ->type_name("JSON")
      ->group(kGraphGroup);
}

void add_picture_flags(CLI::App& verb, EngineFlags& flags) {
  add_choice(verb, "--image-backend", flags.image_backend, {"auto", "torchvision", "pil"},
             "Resize arithmetic; auto is what vLLM uses for the model family")
      ->group(kPictureGroup);
  add_choice(verb, "--rgba", flags.rgba, {"white", "drop"},
             "Transparent pictures: composite over white, or drop the alpha channel")
      ->group(kPictureGroup);
  verb.add_flag("--exif-orientation,!--no-exif-orientation", flags.exif_orientation,
                "Turn pictures as their EXIF data says; vLLM does not (default: off)")
      ->group(kPictureGroup);
  add_positive(verb, "--min-pixels", flags.min_pixels,
               "Enlarge smaller pictures to this area (default: the checkpoint's)")
      ->group(kPictureGroup);
  add_positive(verb, "--max-pixels", flags.max_pixels,
               "Shrink larger pictures to this area (default: the checkpoint's)")
      ->group(kPictureGroup);
  add_positive(verb, "--max-image-pixels", flags.max_image_pixels,
               "Refuse larger pictures before decoding them")
      ->group(kPictureGroup);
}

[[noreturn]] void reject(const std::string& key, const std::string& expected,
                         const nlohmann::json& value) {
  throw UsageError("--compilation-config: " + key + ": expected " + expected + ", got " +
                   value.dump());
}

std::int64_t integer_of(const nlohmann::json& value, const std::string& key, std::int64_t min) {
  if (!value.is_number_integer() || value.get<std::int64_t>() < min) {
    reject(key, "a whole number >= " + std::to_string(min), value);
  }
  return value.get<std::int64_t>();
}

bool boolean_of(const nlohmann::json& value, const std::string& key) {
  if (!value.is_boolean()) reject(key, "true or false", value);
  return value.get<bool>();
}

std::vector<std::int64_t> integers_of(const nlohmann::json& value, const std::string& key) {
  if (!value.is_array()) reject(key, "a list", value);
  std::vector<std::int64_t> result;
  for (const nlohmann::json& element : value) result.push_back(integer_of(element, key, 1));
  return result;
}

/// What is wrong with options for a model, if it is the options. What is wrong with the model is
/// said when it is loaded.
std::optional<std::string> complaint_about(const std::string& model, const EngineOptions& options) {
  try {
    (void)plan(model, {}, options);
  } catch (const Error& error) {
    if (error.code() == ErrorCode::kInvalidArgument) return error.what();
  }
  return std::nullopt;
}

/// A flag whose value a model may not be able to work with.
struct Limit {
  const char* flag;
  void (*leave_out)(EngineOptions& options);
};

constexpr std::array kLimits{
    Limit{"--data-parallel-size", [](EngineOptions& o) { o.data_parallel_size = 0; }},
    Limit{"--min-pixels", [](EngineOptions& o) { o.media.min_pixels.reset(); }},
    Limit{"--max-pixels", [](EngineOptions& o) { o.media.max_pixels.reset(); }},
    Limit{"--token-budgets",
          [](EngineOptions& o) { o.graphs.encoder_cudagraph_token_budgets.clear(); }},
    Limit{"--max-items-per-batch",
          [](EngineOptions& o) { o.graphs.encoder_cudagraph_max_vision_items_per_batch = 0; }},
    Limit{"--max-num-batched-tokens", [](EngineOptions& o) {
            o.max_num_batched_tokens = EngineOptions{}.max_num_batched_tokens;
          }}};

/// Names the flag without which the options would do.
void check_limits(const std::string& model, EngineOptions options) {
  options.log = nullptr;  // what there is to say about the model is said when it is loaded
  const std::optional<std::string> complaint = complaint_about(model, options);
  if (!complaint) return;
  for (const Limit& limit : kLimits) {
    EngineOptions without = options;
    limit.leave_out(without);
    if (!complaint_about(model, without)) throw UsageError(limit.flag + (": " + *complaint));
  }
}

/// @param name one of the choices of --mm-encoder-attn-backend.
AttentionBackend attention_backend(const std::string& name) {
  if (name == "portable") return AttentionBackend::kPortable;
  if (name == "hopper") return AttentionBackend::kHopper;
  if (name == "cudnn") return AttentionBackend::kCudnn;
  return AttentionBackend::kAuto;
}

}  // namespace

void add_console_flags(CLI::App& verb, Program& program) {
  verb.add_flag_callback(
          "-q,--quiet", [&program] { program.console.be_quiet(); },
          "No progress and no log lines on stderr")
      ->group("Messages");
  verb.add_option_function<std::string>(
          "--log-level",
          [&program](const std::string& name) {
            program.console.set_level(name == "trace" || name == "debug" ? LogLevel::kDebug
                                      : name == "info"                   ? LogLevel::kInfo
                                      : name == "warning"                ? LogLevel::kWarning
                                                                         : LogLevel::kError);
          },
          "Log lines of the library on stderr, from this level on")
      ->check(CLI::IsMember({"trace", "debug", "info", "warning", "error"}).description(""))
      ->type_name("trace|debug|info|warning|error")
      ->default_str("warning")
      ->group("Messages");
}

void add_model(CLI::App& verb, EngineFlags& flags) {
  verb.add_option("MODEL,--model", flags.model,
                  "Directory with config.json, preprocessor_config.json and *.safetensors")
      ->type_name("")
      ->required();
}

void add_threads(CLI::App& verb, EngineFlags& flags) {
  add_positive(verb, "--threads", flags.threads,
               "CPU threads for math and decoding (default: all this process may use)")
      ->group(kDeviceGroup);
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
  return home.empty() ? "none" : home + "/.cache/fovea";
}

void add_engine_flags(CLI::App& verb, EngineFlags& flags) {
  add_device_flags(verb, flags);
  add_graph_flags(verb, flags);
  add_picture_flags(verb, flags);
}

CLI::Option* add_choice(CLI::App& verb, const std::string& name, std::string& value,
                        const std::vector<std::string>& choices, const std::string& description) {
  return verb.add_option(name, value, description)
      ->type_name(join(choices, "|"))
      ->check(check([choices](const std::string& text) {
        const bool known = std::find(choices.begin(), choices.end(), text) != choices.end();
        return known ? std::string() : "expected " + join(choices, ", ") + ", got \"" + text + "\"";
      }))
      ->capture_default_str();
}

CLI::Option* add_row_dtype(CLI::App& verb, std::string& value, const std::string& description) {
  return add_choice(verb, "--dtype", value, {"float32", "bfloat16", "float16"}, description);
}

RowDType row_dtype(const std::string& value) {
  if (value == "bfloat16") return RowDType::kBFloat16;
  return value == "float16" ? RowDType::kFloat16 : RowDType::kFloat32;
}

CLI::Option* add_positive_list(CLI::App& verb, const std::string& name,
                               std::vector<std::int64_t>& values, const std::string& description) {
  const auto read = [&values, name](const std::string& text) {
    values = parse_positive_list(text, name);
  };
  CLI::Option* option =
      verb.add_option_function<std::string>(name, read, description)->type_name("N,N,...");
  return values.empty() ? option : option->default_str(join(values, ","));
}

CLI::Option* add_positive(CLI::App& verb, const std::string& name, std::int64_t& value,
                          const std::string& description) {
  const auto read = [&value, name](const std::string& text) { value = parse_whole(text, 1, name); };
  CLI::Option* option =
      verb.add_option_function<std::string>(name, read, description)->type_name("N");
  return value == 0 ? option : option->default_str(std::to_string(value));
}

CLI::Option* add_count(CLI::App& verb, const std::string& name, std::optional<std::int64_t>& value,
                       const std::string& description) {
  const auto read = [&value, name](const std::string& text) { value = parse_whole(text, 0, name); };
  return verb.add_option_function<std::string>(name, read, description)->type_name("N");
}

CLI::Option* add_output_file(CLI::App& verb, const std::string& name, std::string& path,
                             const std::string& description) {
  return verb.add_option(name, path, description)
      ->type_name("FILE")
      ->check(check([](const std::string& text) {
        if (text == "-") {
          return std::string("results are not written to stdout; ./- is a file of that name");
        }
        return text.empty() ? "expected the name of a file, got \"\"" : std::string();
      }))
      ->group(kOutputGroup);
}

EngineOptions engine_options(const EngineFlags& flags, Console& console) {
  EngineOptions options;
  options.device = flags.device;
  options.data_parallel_size = to_int(flags.data_parallel_size, "--data-parallel-size");
  options.num_threads = to_int(flags.threads, "--threads");
  options.dummy_weights = flags.load_format == "dummy";
  options.seed = static_cast<std::uint64_t>(flags.seed.value_or(0));
  options.max_num_batched_tokens = flags.max_num_batched_tokens;
  options.measure_graphs = flags.measure_graphs;
  if (flags.cache_dir != "none") options.cache_dir = flags.cache_dir;
  options.packing = flags.packing == "cost" ? PackingPolicy::kCost : PackingPolicy::kGreedy;
  options.attention = attention_backend(flags.attention);
  options.log = &console;

  if (flags.min_pixels > 0) options.media.min_pixels = flags.min_pixels;
  if (flags.max_pixels > 0) options.media.max_pixels = flags.max_pixels;
  options.media.limits.max_image_pixels = flags.max_image_pixels;
  options.media.image_backend = flags.image_backend == "torchvision" ? ImageBackend::kTorchvision
                                : flags.image_backend == "pil"       ? ImageBackend::kPillow
                                                                     : ImageBackend::kModelDefault;
  options.media.composite_alpha = flags.rgba == "white";
  options.media.apply_exif_orientation = flags.exif_orientation;

  if (!flags.compilation_config.empty()) {
    apply_compilation_config(flags.compilation_config, options.graphs, console);
  }
  if (flags.enforce_eager) options.graphs.cudagraph_mm_encoder = false;
  if (!flags.token_budgets.empty()) {
    options.graphs.encoder_cudagraph_token_budgets = flags.token_budgets;
  }
  if (flags.max_items_per_batch > 0) {
    options.graphs.encoder_cudagraph_max_vision_items_per_batch = flags.max_items_per_batch;
  }
  if (flags.max_frames_per_batch) {
    options.graphs.encoder_cudagraph_max_frames_per_batch = flags.max_frames_per_batch;
  }
  check_limits(flags.model, options);
  return options;
}

void apply_compilation_config(const std::string& json_text, GraphOptions& graphs,
                              Console& console) {
  const nlohmann::json root = nlohmann::json::parse(json_text, nullptr, /*allow_exceptions=*/false);
  if (!root.is_object()) {
    throw UsageError("--compilation-config: expected a JSON object, got " + json_text);
  }
  for (const auto& [key, value] : root.items()) {
    if (value.is_null()) continue;  // the default, as in the reference
    if (key == "cudagraph_mm_encoder") {
      graphs.cudagraph_mm_encoder = boolean_of(value, key);
    } else if (key == "encoder_cudagraph_token_budgets") {
      graphs.encoder_cudagraph_token_budgets = integers_of(value, key);
    } else if (key == "encoder_cudagraph_max_vision_items_per_batch" ||
               key == "encoder_cudagraph_max_images_per_batch") {
      graphs.encoder_cudagraph_max_vision_items_per_batch = integer_of(value, key, 0);
    } else if (key == "encoder_cudagraph_max_frames_per_batch") {
      graphs.encoder_cudagraph_max_frames_per_batch = integer_of(value, key, 0);
    } else {
      console.warn("--compilation-config: key \"" + key + "\" is ignored");
    }
  }
}

}  // namespace fovea::cli
