// Settings whose values a model may not be able to work with.
#include "flags/flags.h"

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <string_view>

#include "errors.h"
#include "fovea/engine.h"

namespace fovea::cli {
namespace {

/// Says what is wrong with options for a model, if it is the options.
std::optional<std::string> complaint_about(const std::string& model, const EngineOptions& options) {
  try {
    (void)plan(model, {}, options);
  } catch (const Error& error) {
    if (error.code() == ErrorCode::kInvalidArgument) return error.what();
  }
  return std::nullopt;
}

/// A flag, and the name of its option where messages of the library have one that is no other word.
struct ModelSetting {
  std::string_view flag;
  std::string_view option;
  void (*leave_out)(EngineOptions& options);
};

constexpr std::array kModelSettings{
    ModelSetting{"--data-parallel-size", "", [](EngineOptions& o) { o.data_parallel_size = 0; }},
    ModelSetting{"--min-pixels", "", [](EngineOptions& o) { o.media.min_pixels.reset(); }},
    ModelSetting{"--max-pixels", "", [](EngineOptions& o) { o.media.max_pixels.reset(); }},
    ModelSetting{"--token-budgets", "encoder_cudagraph_token_budgets",
                 [](EngineOptions& o) {
                   o.graphs.encoder_cudagraph_token_budgets.clear();
                   o.graphs.encoder_cudagraph_path_token_budgets.clear();
                 }},
    ModelSetting{
        "--max-items-per-batch", "encoder_cudagraph_max_vision_items_per_batch",
        [](EngineOptions& o) { o.graphs.encoder_cudagraph_max_vision_items_per_batch = 0; }},
    ModelSetting{"--max-frames-per-batch", "encoder_cudagraph_max_frames_per_batch",
                 [](EngineOptions& o) { o.graphs.encoder_cudagraph_max_frames_per_batch.reset(); }},
    ModelSetting{"--max-num-batched-tokens", "", [](EngineOptions& o) {
                   o.max_num_batched_tokens = EngineOptions{}.max_num_batched_tokens;
                 }}};

/// The setting that a complaint names, else the first one without which there would be none.
const ModelSetting* setting_to_blame(const std::string& model, const EngineOptions& options,
                                     std::string_view complaint) {
  const auto is_named = [&](const ModelSetting& setting) {
    return !setting.option.empty() && complaint.find(setting.option) != std::string_view::npos;
  };
  const auto is_cause = [&](const ModelSetting& setting) {
    EngineOptions without = options;
    setting.leave_out(without);
    return !complaint_about(model, without);
  };
  auto found = std::ranges::find_if(kModelSettings, is_named);
  if (found == kModelSettings.end()) found = std::ranges::find_if(kModelSettings, is_cause);
  return found == kModelSettings.end() ? nullptr : &*found;
}

/// The complaint with flags in place of the options that they set.
std::string with_flags_named(std::string complaint) {
  for (const ModelSetting& setting : kModelSettings) {
    if (setting.option.empty()) continue;
    for (std::size_t at = complaint.find(setting.option); at != std::string::npos;
         at = complaint.find(setting.option, at + setting.flag.size())) {
      complaint.replace(at, setting.option.size(), setting.flag);
    }
  }
  return complaint;
}

}  // namespace

void check_limits(const EngineFlags& flags, EngineOptions options) {
  options.log = nullptr;  // warnings about the model appear when it is loaded
  const std::optional<std::string> complaint = complaint_about(flags.model, options);
  if (!complaint) return;
  const ModelSetting* const setting = setting_to_blame(flags.model, options, *complaint);
  if (setting == nullptr) return;
  const std::string name(setting->flag);
  const std::string text = with_flags_named(*complaint);
  throw UsageError(text.starts_with(name) ? text : name + ": " + text);
}

}  // namespace fovea::cli
