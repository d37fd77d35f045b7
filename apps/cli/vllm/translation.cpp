// Settings under the names of vLLM's command line.
#include "vllm/translation.h"

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>
#include <utility>

#include "core/json_writer.h"
#include "errors.h"
#include "flags/json_text.h"
#include "flags/parse.h"
#include "fovea/error.h"
#include "fovea/options.h"
#include "report/text.h"
#include "vllm/command_line.h"

namespace fovea::cli {
namespace {

constexpr const char* kReplicas = "--tensor-parallel-size";
constexpr const char* kPromptLimit = "--limit-mm-per-prompt";
constexpr const char* kGraphs = "--compilation-config";
constexpr const char* kPromptLength = "--max-model-len";
constexpr const char* kTransfer = "--ec-transfer-config";
constexpr const char* kAttention = "--mm-encoder-attn-backend";

/// A line that is translated, part by part.
class Translator {
 public:
  explicit Translator(std::vector<std::string> words) : line_(std::move(words)) {}

  Translation run() {
    translate_replicas();
    translate_prompt_limits();
    translate_graphs();
    translate_prompt_length();
    translate_attention();
    if (line_.is({"serve"})) translate_transfer();
    if (line_.is({"bench", "mm-processor"})) leave_out_text();
    result_.arguments = std::move(line_).words();
    return std::move(result_);
  }

 private:
  void translate_replicas();
  void translate_prompt_limits();
  void translate_graphs();
  void translate_graph_key(const std::string& key, const JsonView& value);
  void translate_prompt_length();
  void translate_attention();
  void translate_transfer();
  void leave_out_text();

  /// Gives a flag of this program, of which complaints name `source`.
  void put(const std::string& flag, const std::string& value, const std::string& source) {
    line_.put({flag, value});
    result_.sources.emplace(flag, source);
  }
  /// Gives the flag unless it is there.
  void put_if_absent(const std::string& flag, const std::string& value, const std::string& source) {
    if (!line_.has(flag)) put(flag, value, source);
  }

  CommandLine line_;
  Translation result_;
};

/// @throws UsageError for text that is no JSON object.
JsonDocument object_of(const std::string& flag, const std::string& text) {
  std::optional<JsonDocument> json = parse_json_object(text);
  if (!json) throw UsageError(flag + ": expected a JSON object, got " + shown_json(text));
  return std::move(*json);
}

[[noreturn]] void reject(const std::string& what, const std::string& expected,
                         const JsonView& value) {
  throw UsageError(what + ": expected " + expected + ", got " + shown(value));
}

/// Replicas of the tower stand for its parts.
void Translator::translate_replicas() {
  const std::string mode = line_.take("--mm-encoder-tp-mode").value_or("weights");
  if (mode != "weights" && mode != "data") {
    throw UsageError("--mm-encoder-tp-mode: expected weights, data, got \"" + one_line(mode) +
                     "\"");
  }
  const std::optional<std::string> size = line_.take(kReplicas);
  if (!size || parse_whole(*size, 1, kReplicas) == 1) return;
  if (mode == "weights") {
    throw UsageError(kReplicas + (" " + *size) +
                     ": the tower is not divided; --mm-encoder-tp-mode data puts a replica on "
                     "each GPU");
  }
  if (line_.has("--data-parallel-size")) {
    throw UsageError(std::string(kReplicas) +
                     " and --data-parallel-size both give the number of replicas; leave one out");
  }
  put("--data-parallel-size", *size, kReplicas);
}

// --- prompts ---

/// Most media of a modality in a prompt; absent: not limited.
std::optional<std::int64_t> prompt_limit(const JsonView& limits, std::string_view modality) {
  std::optional<std::int64_t> most;
  for (const std::string_view name : limits.keys()) {
    const std::optional<JsonView> limit = limits.find(name);
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

/// Videos that no prompt may have need no graphs.
void Translator::translate_prompt_limits() {
  const std::optional<std::string> text = line_.take(kPromptLimit);
  if (!text) return;
  const JsonDocument json = object_of(kPromptLimit, *text);
  const std::optional<std::int64_t> images = prompt_limit(json.root(), "image");
  const std::optional<std::int64_t> videos = prompt_limit(json.root(), "video");
  if (line_.is({"serve"}) || line_.is({"proxy"}) || line_.is({"bench", "mm-processor"})) {
    if (images) put_if_absent("--max-images-per-prompt", std::to_string(*images), kPromptLimit);
    if (videos) put_if_absent("--max-videos-per-prompt", std::to_string(*videos), kPromptLimit);
  } else if (images || videos.value_or(0) != 0) {
    throw UsageError(std::string(kPromptLimit) +
                     ": this command has no prompts; expected {\"video\": 0}, which leaves videos "
                     "out of the graphs, got " +
                     shown(*text));
  }
  if (videos == 0) put_if_absent("--max-frames-per-batch", "0", kPromptLimit);
}

/// A prompt holds no more rows than it has tokens.
void Translator::translate_prompt_length() {
  const std::optional<std::string> length = line_.take(kPromptLength);
  if (!length) return;
  const std::int64_t most = parse_whole(*length, 1, kPromptLength);
  constexpr const char* kBudgets = "--max-num-batched-tokens";
  const std::optional<std::string> given = line_.take(kBudgets);
  const std::int64_t tokens = given ? parse_whole(*given, 1, kBudgets, kMaxTokenBudget)
                                    : EngineOptions{}.max_num_batched_tokens;
  if (most < tokens) {
    put(kBudgets, std::to_string(most), kPromptLength);
  } else if (given) {
    line_.put({kBudgets, *given});
  }
}

// --- graphs ---

void Translator::translate_graphs() {
  const std::optional<std::string> text = line_.take(kGraphs);
  if (!text) return;
  const JsonDocument json = object_of(kGraphs, *text);
  for (const std::string_view key : json.root().keys()) {
    const std::optional<JsonView> value = json.root().find(key);  // null stands for the default
    if (value) translate_graph_key(std::string(key), *value);
  }
}

void Translator::translate_graph_key(const std::string& key, const JsonView& value) {
  const std::string what = std::string(kGraphs) + ": " + shown(key);
  const auto put_number = [&](const char* flag) {
    const std::optional<std::int64_t> number = value.integer();
    put_if_absent(flag, number ? std::to_string(*number) : shown(value), what);
  };
  if (key == "cudagraph_mm_encoder") {
    if (!value.is_bool()) reject(what, "true or false", value);
    if (!value.as_bool() && !line_.has("--enforce-eager")) line_.put({"--enforce-eager"});
  } else if (key == "encoder_cudagraph_token_budgets") {
    if (!value.is_array() && !value.is_object()) {
      reject(what, "a list, or an object with a list for each path", value);
    }
    put_if_absent("--token-budgets", to_json_text(value), what);
  } else if (key == "encoder_cudagraph_max_vision_items_per_batch" ||
             key == "encoder_cudagraph_max_images_per_batch") {
    put_number("--max-items-per-batch");
  } else if (key == "encoder_cudagraph_max_frames_per_batch") {
    put_number("--max-frames-per-batch");
  } else {
    result_.warnings.push_back(std::string(kGraphs) + ": key \"" + shown(key) + "\" is ignored");
  }
}

// --- attention ---

/// A name of vLLM for an attention kernel.
struct AttentionAlias {
  std::string_view name;
  const char* value;
  const char* stands_for;
};

/// FlashInfer's attention of vision towers is cuDNN's; the others are the libraries' own kernels. A
/// published command of vLLM runs on a machine without them.
constexpr std::array kAttentionAliases{
    AttentionAlias{"FLASH_ATTN", "auto", "auto"},
    AttentionAlias{"FLASHINFER", "cudnn-or-auto", "cudnn, or auto where that is missing,"},
    AttentionAlias{"TORCH_SDPA", "auto", "auto"},
    AttentionAlias{"TRITON_ATTN", "portable", "portable"}};

void Translator::translate_attention() {
  const std::optional<std::string> name = line_.take(kAttention);
  if (!name) return;
  const auto* const alias = std::ranges::find(kAttentionAliases, *name, &AttentionAlias::name);
  if (alias == kAttentionAliases.end()) {
    line_.put({kAttention, *name});
    return;
  }
  line_.put({kAttention, alias->value});
  result_.warnings.push_back(kAttention + (" " + *name) + " stands for " + alias->stands_for +
                             " here");
}

// --- rows in files ---

/// The folder that a transfer configuration names. @throws UsageError for another connector than
/// the one that reads files.
std::string shared_storage_path(const std::string& text) try {
  const JsonDocument json = object_of(kTransfer, text);
  const std::string connector = json.root().string_or("ec_connector", "ECExampleConnector");
  if (connector != "ECExampleConnector") {
    throw UsageError(std::string(kTransfer) + ": only ECExampleConnector reads files, got " +
                     one_line(connector) + "; others fetch rows from /v1/cache (docs/serving.md)");
  }
  const std::optional<JsonView> extra = json.root().find("ec_connector_extra_config");
  std::string path = extra ? extra->string_or("shared_storage_path", "") : "";
  if (path.empty()) {
    throw UsageError(std::string(kTransfer) +
                     ": expected ec_connector_extra_config with shared_storage_path");
  }
  return path;
} catch (const Error& error) {
  throw UsageError(std::string(kTransfer) + ": " + error.what());
}

void Translator::translate_transfer() {
  const std::optional<std::string> text = line_.take(kTransfer);
  if (!text) return;
  const std::string path = shared_storage_path(*text);
  const std::optional<std::string> folder = line_.take("--ec-dir");
  if (folder && *folder != path) {
    throw UsageError(std::string("--ec-dir and ") + kTransfer + " name different folders");
  }
  put("--ec-dir", path, kTransfer);
}

// --- the benchmark ---

/// No text reaches the encoder.
void Translator::leave_out_text() {
  for (const char* flag : {"--random-input-len", "--random-output-len", "--random-range-ratio",
                           "--random-prefix-len", "--output-len", "--hf-output-len"}) {
    if (line_.take(flag)) {
      result_.warnings.push_back(std::string(flag) + " has no effect on this workload");
    }
  }
  if (line_.take_switch("--disable-tqdm")) line_.put({"--quiet"});
}

}  // namespace

std::string Translation::in_typed_words(std::string complaint) const {
  constexpr std::string_view kOfNames = "abcdefghijklmnopqrstuvwxyz-";
  for (const auto& [flag, source] : sources) {
    const std::size_t at = complaint.find(flag);
    if (at == std::string::npos) continue;
    const std::size_t end = at + flag.size();
    const bool is_whole = complaint.find_first_of(kOfNames, end) != end;
    if (is_whole) complaint.replace(at, flag.size(), source);
  }
  return complaint;
}

Translation translate_vllm(std::vector<std::string> arguments) {
  return Translator(std::move(arguments)).run();
}

}  // namespace fovea::cli
