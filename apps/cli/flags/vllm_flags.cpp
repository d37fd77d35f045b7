// Settings under the names of vLLM's command line.
#include "flags/vllm_flags.h"

#include <algorithm>
#include <array>
#include <optional>

#include "errors.h"
#include "flags/cli11.h"
#include "flags/json_text.h"
#include "flags/parse.h"
#include "fovea/option_table.h"
#include "report/text.h"

namespace fovea::cli {
namespace {

constexpr const char* kVllmGroup = "Names of vLLM";
constexpr const char* kPromptLimit = "--limit-mm-per-prompt";

/// A name of vLLM for an attention kernel.
struct AttentionAlias {
  std::string_view name;
  AttentionBackend backend;
  const char* stands_for;
};

/// FlashInfer's attention of vision towers is cuDNN's; the others are the libraries' own kernels. A
/// published command of vLLM runs on a machine without them.
constexpr std::array kAttentionAliases{
    AttentionAlias{"FLASH_ATTN", AttentionBackend::kAuto, "auto"},
    AttentionAlias{"FLASHINFER", AttentionBackend::kCudnnOrAuto,
                   "cudnn, or auto where that is missing,"},
    AttentionAlias{"TORCH_SDPA", AttentionBackend::kAuto, "auto"},
    AttentionAlias{"TRITON_ATTN", AttentionBackend::kPortable, "portable"}};

/// @throws UsageError for limits that a command without prompts cannot hold to.
void refuse_idle_limits(const VllmFlags& flags) {
  const std::optional<std::int64_t> images = prompt_limit(flags.limit_mm_per_prompt, "image");
  const std::int64_t videos = prompt_limit(flags.limit_mm_per_prompt, "video").value_or(0);
  if (flags.has_prompts || (!images && videos == 0)) return;
  throw UsageError(
      std::string(kPromptLimit) +
      ": this command has no prompts; expected {\"video\": 0}, which leaves videos out "
      "of the graphs, got " +
      shown(flags.limit_mm_per_prompt));
}

}  // namespace

std::optional<std::int64_t> prompt_limit(const std::string& json_text, std::string_view modality) {
  if (json_text.empty()) return std::nullopt;
  const std::optional<JsonDocument> json = parse_json_object(json_text);
  if (!json) {
    throw UsageError(std::string(kPromptLimit) + ": expected a JSON object, got " +
                     shown_json(json_text));
  }
  std::optional<std::int64_t> most;
  for (const std::string_view name : json->root().keys()) {
    const std::optional<JsonView> limit = json->root().find(name);
    const std::optional<JsonView> count =
        limit && limit->is_object() ? limit->find("count") : limit;
    const std::optional<std::int64_t> number = count ? count->integer() : std::nullopt;
    if (!number || *number < 0) {
      throw UsageError(std::string(kPromptLimit) + ": " + shown(std::string(name)) + ": expected " +
                       whole_number_text(0, kNoLimit) + ", got " +
                       (limit ? shown(*limit) : "null"));
    }
    if (name == modality) most = number;
  }
  return most;
}

void add_vllm_flags(CLI::App& verb, VllmFlags& flags) {
  add_positive(verb, "--tensor-parallel-size", flags.tensor_parallel_size,
               "Number of replicas, with --mm-encoder-tp-mode data")
      ->group(kVllmGroup);
  add_choice(verb, "--mm-encoder-tp-mode", flags.mm_encoder_tp_mode, {"weights", "data"},
             "data puts a replica of the tower on each GPU; weights would divide it, which only a "
             "single GPU does")
      ->group(kVllmGroup);
  add_json(verb, kPromptLimit, flags.limit_mm_per_prompt,
           flags.has_prompts
               ? "Most items of each modality; {\"video\": 0} leaves videos out of the graphs, too"
               : "{\"video\": 0} leaves videos out of the graphs")
      ->group(kVllmGroup);
  add_positive(verb, "--max-model-len", flags.max_model_len,
               "Longest prompt: bounds inferred token budgets like --max-num-batched-tokens")
      ->group(kVllmGroup);
}

void apply_vllm_flags(const VllmFlags& flags, EngineOptions& options) {
  if (flags.tensor_parallel_size > 1) {
    if (flags.mm_encoder_tp_mode != "data") {
      throw UsageError("--tensor-parallel-size " + std::to_string(flags.tensor_parallel_size) +
                       ": the tower is not divided; --mm-encoder-tp-mode data puts a replica on "
                       "each GPU");
    }
    if (options.data_parallel_size > 0) {
      throw UsageError(
          "--tensor-parallel-size and --data-parallel-size both give the number of "
          "replicas; leave one out");
    }
    options.data_parallel_size = to_int(flags.tensor_parallel_size, "--tensor-parallel-size");
  }
  refuse_idle_limits(flags);
  if (prompt_limit(flags.limit_mm_per_prompt, "video") == 0) {
    options.graphs.encoder_cudagraph_max_frames_per_batch = 0;
  }
  if (flags.max_model_len > 0) {
    options.max_num_batched_tokens = std::min(options.max_num_batched_tokens, flags.max_model_len);
  }
}

std::vector<std::string> attention_names() {
  const auto& own = kValueNames<AttentionBackend>;
  std::vector<std::string> names(own.begin(), own.end());
  for (const AttentionAlias& alias : kAttentionAliases) names.emplace_back(alias.name);
  return names;
}

AttentionBackend attention_backend(const std::string& name, Console& console) {
  if (const auto own = value_named<AttentionBackend>(name)) return *own;
  const auto* const alias = std::ranges::find(kAttentionAliases, name, &AttentionAlias::name);
  console.write(LogLevel::kWarning,
                "--mm-encoder-attn-backend " + name + " stands for " + alias->stands_for + " here");
  return alias->backend;
}

}  // namespace fovea::cli
