// Flags whose values a model may not be able to work with.
#include "model_limits.h"

#include <array>
#include <optional>

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

}  // namespace

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

}  // namespace fovea::cli
