// Settings whose values a model may not be able to work with.
#include "flags/model_limits.h"

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <string_view>

#include "errors.h"
#include "fovea/engine.h"

namespace fovea::cli {
namespace {

/// What is wrong with options for a model, if it is the options.
std::optional<std::string> complaint_about(const std::string& model, const EngineOptions& options) {
  try {
    (void)plan(model, {}, options);
  } catch (const Error& error) {
    if (error.code() == ErrorCode::kInvalidArgument) return error.what();
  }
  return std::nullopt;
}

/// A setting, under the names that it can be given.
struct ModelSetting {
  std::string_view flag;
  std::string_view key;  ///< in --compilation-config and in messages of the library, or empty
  bool (*has_flag)(const EngineFlags& flags);
  void (*leave_out)(EngineOptions& options);
};

bool always(const EngineFlags& /*flags*/) { return true; }

constexpr std::array kSettings{
    ModelSetting{"--tensor-parallel-size", "",
                 [](const EngineFlags& f) { return f.vllm.tensor_parallel_size > 1; },
                 [](EngineOptions& o) { o.data_parallel_size = 0; }},
    ModelSetting{"--data-parallel-size", "", always,
                 [](EngineOptions& o) { o.data_parallel_size = 0; }},
    ModelSetting{"--min-pixels", "", always, [](EngineOptions& o) { o.media.min_pixels.reset(); }},
    ModelSetting{"--max-pixels", "", always, [](EngineOptions& o) { o.media.max_pixels.reset(); }},
    ModelSetting{
        "--token-budgets", "encoder_cudagraph_token_budgets",
        [](const EngineFlags& f) { return f.given.contains("encoder_cudagraph_token_budgets"); },
        [](EngineOptions& o) {
          o.graphs.encoder_cudagraph_token_budgets.clear();
          o.graphs.encoder_cudagraph_path_token_budgets.clear();
        }},
    ModelSetting{
        "--max-items-per-batch", "encoder_cudagraph_max_vision_items_per_batch",
        [](const EngineFlags& f) {
          return f.given.contains("encoder_cudagraph_max_vision_items_per_batch");
        },
        [](EngineOptions& o) { o.graphs.encoder_cudagraph_max_vision_items_per_batch = 0; }},
    ModelSetting{"--max-frames-per-batch", "encoder_cudagraph_max_frames_per_batch",
                 [](const EngineFlags& f) {
                   return f.given.contains("encoder_cudagraph_max_frames_per_batch");
                 },
                 [](EngineOptions& o) { o.graphs.encoder_cudagraph_max_frames_per_batch.reset(); }},
    ModelSetting{"--max-model-len", "",
                 [](const EngineFlags& f) {
                   return f.vllm.max_model_len > 0 &&
                          f.vllm.max_model_len < f.options.max_num_batched_tokens;
                 },
                 [](EngineOptions& o) {
                   o.max_num_batched_tokens = EngineOptions{}.max_num_batched_tokens;
                 }},
    ModelSetting{"--max-num-batched-tokens", "", always, [](EngineOptions& o) {
                   o.max_num_batched_tokens = EngineOptions{}.max_num_batched_tokens;
                 }}};

/// The setting that a complaint names, else the first one without which there would be none.
const ModelSetting* setting_to_blame(const EngineFlags& flags, const EngineOptions& options,
                                     std::string_view complaint) {
  const auto is_named = [&](const ModelSetting& setting) {
    return !setting.key.empty() && complaint.find(setting.key) != std::string_view::npos;
  };
  const auto is_cause = [&](const ModelSetting& setting) {
    if (setting.key.empty() && !setting.has_flag(flags)) return false;
    EngineOptions without = options;
    setting.leave_out(without);
    return !complaint_about(flags.model, without);
  };
  auto found = std::ranges::find_if(kSettings, is_named);
  if (found == kSettings.end()) found = std::ranges::find_if(kSettings, is_cause);
  return found == kSettings.end() ? nullptr : &*found;
}

/// The complaint with flags in place of the keys that they stand for, if the flags were typed.
std::string with_flags_named(std::string complaint, const EngineFlags& flags) {
  for (const ModelSetting& setting : kSettings) {
    if (setting.key.empty() || !setting.has_flag(flags)) continue;
    for (std::size_t at = complaint.find(setting.key); at != std::string::npos;
         at = complaint.find(setting.key, at + setting.flag.size())) {
      complaint.replace(at, setting.key.size(), setting.flag);
    }
  }
  return complaint;
}

}  // namespace

void check_limits(const EngineFlags& flags, EngineOptions options) {
  options.log = nullptr;  // warnings about the model appear when it is loaded
  const std::optional<std::string> complaint = complaint_about(flags.model, options);
  if (!complaint) return;
  const ModelSetting* const setting = setting_to_blame(flags, options, *complaint);
  if (setting == nullptr) return;
  const bool typed_flag = setting->has_flag(flags);
  const std::string name(typed_flag ? setting->flag : setting->key);
  const std::string text = with_flags_named(*complaint, flags);
  throw UsageError((typed_flag ? "" : "--compilation-config: ") +
                   (text.starts_with(name) ? text : name + ": " + text));
}

}  // namespace fovea::cli
