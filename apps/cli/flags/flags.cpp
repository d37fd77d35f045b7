// Flags that the verbs share, and their translation into EngineOptions.
#include "flags/flags.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include "flags/cli11.h"
#include "flags/compilation_config.h"
#include "flags/hub_cache.h"
#include "flags/json_text.h"
#include "flags/parse.h"
#include "report/text.h"

namespace fovea::cli {
namespace {

constexpr const char* kDeviceGroup = "Model and device";
constexpr const char* kGraphGroup = "Graphs";

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

void add_device_flags(CLI::App& verb, EngineFlags& flags) {
  verb.add_option("--device", flags.device,
                  "Where the tower runs; several devices share the items of a batch")
      ->type_name("auto|cpu|cuda[:i],...")
      ->transform(check(complaint_about_devices))
      ->capture_default_str()
      ->group(kDeviceGroup);
  add_positive(
      verb, "--data-parallel-size", flags.data_parallel_size,
      "Number of replicas: on the first N GPUs, or on N parts of the CPU (default: one per "
      "device named)")
      ->group(kDeviceGroup);
  add_choice(verb, "--mm-encoder-attn-backend", flags.attention, attention_names(),
             "Attention kernel of a GPU; auto takes the faster of portable and hopper for each "
             "size, and names of vLLM stand for one of these")
      ->group(kDeviceGroup);
  add_choice(
      verb, "--gpu-wait", flags.gpu_wait, {"auto", "spin", "sleep"},
      "How threads wait for a GPU: spin takes a whole processor and answers soonest; sleep "
      "leaves it to others and adds some 0.1 ms to a batch; auto spins, but sleeps while the "
      "host is busy")
      ->group(kDeviceGroup);
  add_choice(verb, "--quantization", flags.quantization, {"none", "fp8", "int8"},
             "Multiplies numbers of 8 bits, faster and less precise: fp8 in all blocks but the "
             "first three, on Hopper only; int8 in all blocks, on CPUs only")
      ->group(kDeviceGroup);
  add_choice(verb, "--dtype-compute", flags.dtype_compute, {"auto", "float32", "bfloat16"},
             "What GEMMs multiply that are not quantized; auto is bfloat16 on a GPU and float32 on "
             "a CPU, beside int8 bfloat16 where that is faster. It is with AMX, and on AMD with "
             "AVX512-BF16")
      ->group(kDeviceGroup);
  add_choice(verb, "--load-format", flags.load_format, {"auto", "safetensors", "dummy"},
             "dummy needs only config.json and fills the tower with seeded random weights")
      ->group(kDeviceGroup);
  verb.add_option(
          "--cache-dir", flags.cache_dir,
          "Directory that stores measurements on a GPU for the next start; none stores nothing")
      ->type_name("DIR|none")
      ->capture_default_str()
      ->group(kDeviceGroup);
  add_count(verb, "--seed", flags.seed, "Seed of dummy weights (default: 0)")->group(kDeviceGroup);
}

/// "64,256", the same as JSON: [64, 256], or {"global": [272], "local": [100, 400]}.
void read_token_budgets(const std::string& text, EngineFlags& flags) {
  constexpr const char* kFlag = "--token-budgets";
  const bool by_path = text.starts_with('{');
  flags.path_token_budgets = by_path ? text : "";
  if (!by_path && !text.starts_with('[')) {
    flags.token_budgets = parse_positive_list(text, kFlag, kMaxTokenBudget);
    return;
  }
  GraphOptions read;
  apply_json_budgets(text, kFlag, read);
  flags.token_budgets = read.encoder_cudagraph_token_budgets;
}

void add_graph_flags(CLI::App& verb, EngineFlags& flags) {
  verb.add_flag("--enforce-eager", flags.enforce_eager, "Run everything eagerly, without graphs")
      ->group(kGraphGroup);
  verb.add_option_function<std::string>(
          "--token-budgets", [&flags](const std::string& text) { read_token_budgets(text, flags); },
          "Token budgets, one graph for each; as JSON a list for each path (default: inferred from "
          "the model)")
      ->type_name("N,N,...|JSON")
      ->group(kGraphGroup);
  add_count(verb, "--max-items-per-batch", flags.max_items_per_batch,
            "Most items in one replay; 0 infers it from the model (default: inferred)",
            kMaxTokenBudget)
      ->group(kGraphGroup);
  add_count(verb, "--max-frames-per-batch", flags.max_frames_per_batch,
            "Most attention sequences in a replay with a video: an image is one, a video one per "
            "temporal patch; 0 runs videos eagerly (default: inferred)",
            kMaxTokenBudget)
      ->group(kGraphGroup);
  add_positive(verb, "--max-num-batched-tokens", flags.max_num_batched_tokens,
               "Upper end of inferred token budgets", kMaxTokenBudget)
      ->group(kGraphGroup);
  add_choice(
      verb, "--packing", flags.packing, {"greedy", "greedy-fill", "cost"},
      "How items share budgets: smallest first as in vLLM since 0.32, as until 0.31, or for the "
      "least total cost")
      ->group(kGraphGroup);
  verb.add_flag("--measure-graphs,!--no-measure-graphs", flags.measure_graphs,
                "On a GPU, time every graph and run eagerly where that is faster (default: on)")
      ->group(kGraphGroup);
  add_json(verb, "--compilation-config", flags.compilation_config,
           "The same settings under vLLM's names; flags take precedence")
      ->group(kGraphGroup);
}

GraphOptions graph_options(const EngineFlags& flags, Console& console) {
  GraphOptions graphs;
  if (!flags.compilation_config.empty()) {
    apply_compilation_config(flags.compilation_config, graphs, console);
  }
  if (flags.enforce_eager) graphs.cudagraph_mm_encoder = false;
  if (!flags.path_token_budgets.empty()) {
    apply_json_budgets(flags.path_token_budgets, "--token-budgets", graphs);
  } else if (!flags.token_budgets.empty()) {
    graphs.encoder_cudagraph_token_budgets = flags.token_budgets;
    graphs.encoder_cudagraph_path_token_budgets.clear();
  }
  if (flags.max_items_per_batch) {
    graphs.encoder_cudagraph_max_vision_items_per_batch = *flags.max_items_per_batch;
  }
  if (flags.max_frames_per_batch) {
    graphs.encoder_cudagraph_max_frames_per_batch = flags.max_frames_per_batch;
  }
  return graphs;
}

Quantization quantization(const std::string& name) {
  if (name == "fp8") return Quantization::kFp8;
  return name == "int8" ? Quantization::kInt8 : Quantization::kNone;
}

GpuWait gpu_wait(const std::string& name) {
  if (name == "spin") return GpuWait::kSpin;
  return name == "sleep" ? GpuWait::kSleep : GpuWait::kAuto;
}

ComputeDType compute_dtype(const std::string& name) {
  if (name == "float32") return ComputeDType::kFloat32;
  return name == "bfloat16" ? ComputeDType::kBFloat16 : ComputeDType::kAuto;
}

}  // namespace

void add_model(CLI::App& verb, EngineFlags& flags) {
  verb.add_option("MODEL,--model", flags.model,
                  "Directory with config.json, preprocessor_config.json and *.safetensors, or a "
                  "name on the hub that is in its cache")
      ->type_name("")
      ->transform(check(resolve_hub_name))
      ->required();
}

std::string model_name(const std::string& directory) {
  return std::filesystem::absolute(directory + "/.").lexically_normal().parent_path().filename();
}

void add_threads(CLI::App& verb, EngineFlags& flags) {
  add_positive(verb, "--threads", flags.threads,
               "CPU threads for math and decoding (default: all this process may use)", kMaxThreads)
      ->group(kDeviceGroup);
}

void add_decode_processes(CLI::App& verb, EngineFlags& flags) {
  add_positive(verb, "--decode-processes", flags.decode_processes,
               "Decode files in N processes of their own: what breaks a decoder costs one item "
               "(default: in this process)")
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
  add_media_flags(verb, flags.media);
  add_vllm_flags(verb, flags.vllm);
}

CLI::Option* add_row_dtype(CLI::App& verb, std::string& value, const std::string& description) {
  return add_choice(verb, "--dtype", value, {"float32", "bfloat16", "float16"}, description);
}

RowDType row_dtype(const std::string& value) {
  if (value == "bfloat16") return RowDType::kBFloat16;
  return value == "float16" ? RowDType::kFloat16 : RowDType::kFloat32;
}

PackingPolicy packing_policy(std::string_view name) {
  if (name == "cost") return PackingPolicy::kCost;
  return name == "greedy-fill" ? PackingPolicy::kGreedyFill : PackingPolicy::kGreedy;
}

EngineOptions engine_options(const EngineFlags& flags, Console& console) {
  EngineOptions options;
  options.device = flags.device;
  options.data_parallel_size = to_int(flags.data_parallel_size, "--data-parallel-size");
  options.num_threads = to_int(flags.threads, "--threads");
  options.decode_processes = to_int(flags.decode_processes, "--decode-processes");
  options.encoder_cache_size = flags.encoder_cache.rows;
  options.encoder_cache_bytes = flags.encoder_cache.bytes;
  options.encoder_device_cache_size = flags.encoder_device_cache_bytes;
  options.dummy_weights = flags.load_format == "dummy";
  options.seed = static_cast<std::uint64_t>(flags.seed.value_or(0));
  options.max_num_batched_tokens = flags.max_num_batched_tokens;
  options.media = media_options(flags.media);
  options.graphs = graph_options(flags, console);
  options.packing = packing_policy(flags.packing);
  options.attention = attention_backend(flags.attention, console);
  options.gpu_wait = gpu_wait(flags.gpu_wait);
  options.quantization = quantization(flags.quantization);
  options.dtype_compute = compute_dtype(flags.dtype_compute);
  options.measure_graphs = flags.measure_graphs;
  if (flags.cache_dir != "none") options.cache_dir = flags.cache_dir;
  apply_vllm_flags(flags.vllm, options);
  options.log = &console;
  return options;
}

}  // namespace fovea::cli
