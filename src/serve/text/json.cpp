#include "serve/text/json.h"

#include <algorithm>
#include <utility>

#include "fovea/text.h"
#include "serve/api_error.h"

namespace fovea::serve {
namespace {

[[noreturn]] void refuse(const std::string& path, const std::string& expected,
                         const JsonView& got) {
  throw ApiError(400, "invalid_value", path + ": expected " + expected + ", got " + got.summary(),
                 path);
}

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

/// How many letters to change, insert or drop to make one word of the other.
std::size_t distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (std::size_t i = 0; i < a.size(); ++i) {
    std::size_t diagonal = std::exchange(row[0], i + 1);
    for (std::size_t j = 0; j < b.size(); ++j) {
      const std::size_t changed = diagonal + (a[i] == b[j] ? 0 : 1);
      diagonal = row[j + 1];
      row[j + 1] = std::min({changed, row[j] + 1, row[j + 1] + 1});
    }
  }
  return row.back();
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

Fields::Fields(const JsonView& json, std::string where) : json_(json), where_(std::move(where)) {
  if (!json.is_object()) refuse(where_, "an object", json);
}

std::string Fields::path(std::string_view name) const {
  return where_.empty() ? std::string(name) : where_ + "." + std::string(name);
}

std::optional<JsonView> Fields::find(std::string_view name) {
  asked_.push_back(name);
  return json_.find(name);
}

std::optional<std::string_view> Fields::text(std::string_view name) {
  const std::optional<JsonView> json = find(name);
  if (!json) return std::nullopt;
  if (!json->is_string()) refuse(path(name), "text", *json);
  return json->as_text();
}

std::optional<bool> Fields::boolean(std::string_view name) {
  const std::optional<JsonView> json = find(name);
  if (!json) return std::nullopt;
  if (!json->is_bool()) refuse(path(name), "true or false", *json);
  return json->as_bool();
}

std::optional<double> Fields::number(std::string_view name) {
  const std::optional<JsonView> json = find(name);
  if (!json) return std::nullopt;
  if (!json->is_number()) refuse(path(name), "a number", *json);
  return json->as_number();
}

std::optional<std::int64_t> Fields::integer(std::string_view name) {
  const std::optional<JsonView> json = find(name);
  if (!json) return std::nullopt;
  if (!json->integer()) refuse(path(name), "a whole number", *json);
  return json->integer();
}

std::optional<std::string_view> Fields::choice(std::string_view name,
                                               std::initializer_list<std::string_view> choices) {
  const std::optional<std::string_view> value = text(name);
  if (!value || std::ranges::find(choices, *value) != choices.end()) return value;
  std::string expected = "one of";
  for (const std::string_view choice : choices) {
    expected += (expected.ends_with("of") ? " " : ", ") + std::string(choice);
  }
  refuse(path(name), expected, json_.at(name));
}

void Fields::refuse_others() const {
  for (std::size_t i = 0; i < json_.num_members(); ++i) {
    const std::string_view name = json_.key(i);
    if (std::ranges::find(asked_, name) != asked_.end()) continue;
    const std::string_view given = name.substr(0, 100);
    std::string message = "unknown field " + path(shortened(name, 100));
    const auto nearest = std::ranges::min_element(
        asked_, {}, [&](std::string_view known) { return distance(known, given); });
    if (nearest != asked_.end() && distance(*nearest, given) <= 2) {
      message += "; did you mean " + std::string(*nearest) + "?";
    }
    throw ApiError(400, "unknown_field", message, path(shortened(name, 100)));
  }
}

}  // namespace fovea::serve
