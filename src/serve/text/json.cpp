#include "serve/text/json.h"

#include <algorithm>
#include <utility>

#include "fovea/text.h"
#include "serve/api_error.h"

namespace fovea::serve {
namespace {

/// A document, and what its text lies in.
struct OwningJson {
  OwningJson(std::shared_ptr<const void> of_text, JsonDocument of_value)
      : owner(std::move(of_text)), document(std::move(of_value)) {}

  std::shared_ptr<const void> owner;
  JsonDocument document;
};

JsonDocument parse_body(std::string_view text) {
  const JsonRules rules{
      .duplicates = DuplicateKeys::kReject, .non_finite = false, .limits = kBodyLimits};
  try {
    return JsonDocument::parse_borrowed(text, "the body", rules);
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kCorruptData) throw;
    throw ApiError(400, "invalid_json", error.what());
  }
}

}  // namespace

SharedJson parse_json_object(std::string_view text, std::shared_ptr<const void> owner) {
  const auto json = std::make_shared<const OwningJson>(std::move(owner), parse_body(text));
  const JsonView root = json->document.root();
  if (!root.is_object()) {
    throw ApiError(400, "invalid_json", "expected a JSON object, got " + root.summary());
  }
  return {json, &json->document};
}

SharedJson parse_json_object(std::string text) {
  const auto owner = std::make_shared<const std::string>(std::move(text));
  return parse_json_object(*owner, owner);
}

std::string element_path(std::string_view list, std::size_t index) {
  return std::string(list) + "[" + std::to_string(index) + "]";
}

bool is_utf8(std::string_view text) {
  while (!text.empty()) {
    const Character character = first_character(text);
    if (!character.code) return false;
    text.remove_prefix(character.bytes);
  }
  return true;
}

}  // namespace fovea::serve
