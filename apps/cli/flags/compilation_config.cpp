// The JSON of --compilation-config.
#include "flags/compilation_config.h"

#include <optional>
#include <string_view>

#include "errors.h"
#include "flags/json_text.h"
#include "flags/parse.h"

namespace fovea::cli {
namespace {

/// @param key with the flag that it stands in.
[[noreturn]] void reject(const std::string& key, const std::string& expected,
                         const JsonView& value) {
  throw UsageError(key + ": expected " + expected + ", got " + shown(value));
}

std::int64_t integer_of(const JsonView& value, const std::string& key, std::int64_t min,
                        std::int64_t max = kNoLimit) {
  const std::int64_t number = value.integer().value_or(min - 1);
  if (number < min || number > max) reject(key, whole_number_text(min, max), value);
  return number;
}

bool boolean_of(const JsonView& value, const std::string& key) {
  if (!value.is_bool()) reject(key, "true or false", value);
  return value.as_bool();
}

std::vector<std::int64_t> list_of(const JsonView& value, const std::string& key,
                                  const std::string& expected) {
  if (!value.is_array()) reject(key, expected, value);
  std::vector<std::int64_t> result;
  for (const JsonView& element : value.elements()) {
    result.push_back(integer_of(element, key, 1, kMaxTokenBudget));
  }
  return result;
}

/// Reads a list for all paths, or an object with lists of paths.
void apply_budgets(const JsonView& value, const std::string& key, GraphOptions& graphs) {
  graphs.encoder_cudagraph_token_budgets.clear();
  graphs.encoder_cudagraph_path_token_budgets.clear();
  if (!value.is_object()) {
    graphs.encoder_cudagraph_token_budgets =
        list_of(value, key, "a list, or an object with a list for each path");
    return;
  }
  for (std::size_t i = 0; i < value.num_members(); ++i) {
    const std::string path(value.key(i));
    graphs.encoder_cudagraph_path_token_budgets[path] =
        list_of(value.member(i), std::string(key).append(": ").append(shown(path)), "a list");
  }
}

}  // namespace

void apply_json_budgets(const std::string& json_text, const std::string& what,
                        GraphOptions& graphs) {
  const std::optional<JsonDocument> json = parse_json(json_text);
  if (!json || (!json->root().is_object() && !json->root().is_array())) {
    throw UsageError(what + ": expected a JSON " +
                     (json_text.starts_with('[') ? "list" : "object") + ", got " +
                     shown_json(json_text));
  }
  apply_budgets(json->root(), what, graphs);
}

void apply_compilation_config(const std::string& json_text, GraphOptions& graphs,
                              Console& console) {
  const std::optional<JsonDocument> json = parse_json_object(json_text);
  if (!json) {
    throw UsageError("--compilation-config: expected a JSON object, got " + shown_json(json_text));
  }
  for (const std::string_view name : json->root().keys()) {
    if (!json->root().find(name)) continue;
    const std::string key(name);
    const JsonView value = json->root().at(name);
    const std::string what = "--compilation-config: " + shown(key);
    if (key == "cudagraph_mm_encoder") {
      graphs.cudagraph_mm_encoder = boolean_of(value, what);
    } else if (key == "encoder_cudagraph_token_budgets") {
      apply_budgets(value, what, graphs);
    } else if (key == "encoder_cudagraph_max_vision_items_per_batch" ||
               key == "encoder_cudagraph_max_images_per_batch") {
      graphs.encoder_cudagraph_max_vision_items_per_batch =
          integer_of(value, what, 0, kMaxTokenBudget);
    } else if (key == "encoder_cudagraph_max_frames_per_batch") {
      graphs.encoder_cudagraph_max_frames_per_batch = integer_of(value, what, 0, kMaxTokenBudget);
    } else {
      console.warn("--compilation-config: key \"" + shown(key) + "\" is ignored");
    }
  }
}

}  // namespace fovea::cli
