// The JSON of --compilation-config.
#include "flags/compilation_config.h"

#include <nlohmann/json.hpp>

#include "errors.h"
#include "flags/parse.h"

namespace fovea::cli {
namespace {

[[noreturn]] void reject(const std::string& key, const std::string& expected,
                         const nlohmann::json& value) {
  throw UsageError("--compilation-config: " + key + ": expected " + expected + ", got " +
                   value.dump());
}

std::int64_t integer_of(const nlohmann::json& value, const std::string& key, std::int64_t min,
                        std::int64_t max = kNoLimit) {
  const std::int64_t number = value.is_number_integer() ? value.get<std::int64_t>() : min - 1;
  if (number < min || number > max) reject(key, whole_number_text(min, max), value);
  return number;
}

bool boolean_of(const nlohmann::json& value, const std::string& key) {
  if (!value.is_boolean()) reject(key, "true or false", value);
  return value.get<bool>();
}

std::vector<std::int64_t> budgets_of(const nlohmann::json& value, const std::string& key) {
  if (!value.is_array()) reject(key, "a list", value);
  std::vector<std::int64_t> result;
  for (const nlohmann::json& element : value) {
    result.push_back(integer_of(element, key, 1, kMaxTokenBudget));
  }
  return result;
}

}  // namespace

void apply_compilation_config(const std::string& json_text, GraphOptions& graphs,
                              Console& console) {
  const nlohmann::json root = nlohmann::json::parse(json_text, nullptr, /*allow_exceptions=*/false);
  if (!root.is_object()) {
    throw UsageError("--compilation-config: expected a JSON object, got " + json_text);
  }
  for (const auto& [key, value] : root.items()) {
    if (value.is_null()) continue;
    if (key == "cudagraph_mm_encoder") {
      graphs.cudagraph_mm_encoder = boolean_of(value, key);
    } else if (key == "encoder_cudagraph_token_budgets") {
      graphs.encoder_cudagraph_token_budgets = budgets_of(value, key);
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
