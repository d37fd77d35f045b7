#include "serve/text/json.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <utility>

#include "serve/api_error.h"

namespace fovea::serve {
namespace {

/// Watches the parser: depth, and keys given twice, which it would let the last of win.
class Watch {
 public:
  bool operator()(int depth, Json::parse_event_t event, const Json& parsed) {
    using Event = Json::parse_event_t;
    if (event == Event::object_start || event == Event::array_start) {
      if (depth >= kMaxJsonDepth) {
        throw ApiError(
            400, "invalid_json",
            "the body is nested deeper than " + std::to_string(kMaxJsonDepth) + " levels");
      }
      keys_.emplace_back();
    } else if (event == Event::object_end || event == Event::array_end) {
      keys_.pop_back();
    } else if (event == Event::key && !keys_.back().insert(parsed.get<std::string>()).second) {
      throw ApiError(400, "invalid_json",
                     "the body gives \"" + shortened(parsed.get<std::string>(), 100) + "\" twice");
    }
    return true;
  }

 private:
  std::vector<std::set<std::string>> keys_;
};

std::string kind_of(const Json& json) {
  if (json.is_string()) return "\"" + shortened(json.get_ref<const std::string&>(), 60) + "\"";
  return json.is_structured() ? (json.is_array() ? "an array" : "an object")
                              : shortened(to_text(json), 60);
}

[[noreturn]] void refuse(const std::string& path, const std::string& expected, const Json& got) {
  throw ApiError(400, "invalid_value", path + ": expected " + expected + ", got " + kind_of(got),
                 path);
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

Json parse_json_object(std::string_view text) {
  Json json;
  try {
    Watch watch;
    json = Json::parse(text, [&](int depth, Json::parse_event_t event, const Json& parsed) {
      return watch(depth, event, parsed);
    });
  } catch (const Json::parse_error& error) {
    throw ApiError(400, "invalid_json", "the body is no JSON: " + shortened(error.what(), 300));
  } catch (const Json::exception& error) {
    throw ApiError(400, "invalid_json", shortened(error.what(), 300));
  }
  if (!json.is_object()) {
    throw ApiError(400, "invalid_json", "expected a JSON object, got " + kind_of(json));
  }
  return json;
}

std::string element_path(const std::string& list, std::size_t index) {
  return list + "[" + std::to_string(index) + "]";
}

std::string to_text(const Json& json) {
  return json.dump(-1, ' ', /*ensure_ascii=*/false, Json::error_handler_t::replace);
}

bool is_utf8(std::string_view text) {
  try {
    (void)Json(text).dump();
    return true;
  } catch (const Json::type_error&) {
    return false;
  }
}

Fields::Fields(const Json& json, std::string where) : json_(&json), where_(std::move(where)) {
  if (!json.is_object()) refuse(where_, "an object", json);
}

std::string Fields::path(std::string_view name) const {
  return where_.empty() ? std::string(name) : where_ + "." + std::string(name);
}

const Json* Fields::find(std::string_view name) {
  asked_.emplace_back(name);
  const auto found = json_->find(std::string(name));
  return found == json_->end() || found->is_null() ? nullptr : &*found;
}

std::optional<std::string> Fields::text(std::string_view name) {
  const Json* json = find(name);
  if (json == nullptr) return std::nullopt;
  if (!json->is_string()) refuse(path(name), "text", *json);
  return json->get<std::string>();
}

std::optional<bool> Fields::boolean(std::string_view name) {
  const Json* json = find(name);
  if (json == nullptr) return std::nullopt;
  if (!json->is_boolean()) refuse(path(name), "true or false", *json);
  return json->get<bool>();
}

std::optional<double> Fields::number(std::string_view name) {
  const Json* json = find(name);
  if (json == nullptr) return std::nullopt;
  if (!json->is_number() || !std::isfinite(json->get<double>()))
    refuse(path(name), "a number", *json);
  return json->get<double>();
}

std::optional<std::int64_t> Fields::integer(std::string_view name) {
  const Json* json = find(name);
  if (json == nullptr) return std::nullopt;
  const bool fits = json->is_number_integer() &&
                    (!json->is_number_unsigned() || json->get<std::uint64_t>() <= INT64_MAX);
  if (!fits) refuse(path(name), "a whole number", *json);
  return json->get<std::int64_t>();
}

std::optional<std::string> Fields::choice(std::string_view name,
                                          std::initializer_list<std::string_view> choices) {
  std::optional<std::string> value = text(name);
  if (!value || std::ranges::find(choices, *value) != choices.end()) return value;
  std::string expected = "one of";
  for (const std::string_view choice : choices) {
    expected += (expected.ends_with("of") ? " " : ", ") + std::string(choice);
  }
  refuse(path(name), expected, *json_->find(std::string(name)));
}

void Fields::refuse_others() const {
  for (const auto& [name, value] : json_->items()) {
    if (std::ranges::find(asked_, name) != asked_.end()) continue;
    const std::string given = name.substr(0, 100);
    std::string message = "unknown field " + path(shortened(name, 100));
    const auto nearest = std::ranges::min_element(
        asked_, {}, [&](const std::string& known) { return distance(known, given); });
    if (nearest != asked_.end() && distance(*nearest, given) <= 2) {
      message += "; did you mean " + *nearest + "?";
    }
    throw ApiError(400, "unknown_field", message, path(shortened(name, 100)));
  }
}

}  // namespace fovea::serve
