#include "serve/text/object_table.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "fovea/text.h"

namespace fovea::serve {
namespace {

[[noreturn]] void refuse_value(const std::string& path, const std::string& expected,
                               const JsonView& got) {
  serve::refuse(path, "expected " + expected + ", got " + got.summary());
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

bool is_choice(const MemberFacts& facts, std::string_view text) {
  return facts.choices.empty() || std::ranges::find(facts.choices, text) != facts.choices.end();
}

std::string names_of(std::span<const std::string_view> choices) {
  std::string names = "one of";
  for (const std::string_view choice : choices) {
    names += (names.ends_with("of") ? " " : ", ") + std::string(choice);
  }
  return names;
}

/// A bound without a fraction where it has none.
std::string bound_text(double bound) {
  const auto whole = static_cast<std::int64_t>(bound);
  return static_cast<double>(whole) == bound ? std::to_string(whole) : json_number(bound);
}

void check_bounds(const MemberFacts& facts, const JsonView& json, const std::string& path) {
  const double value = json.as_number();
  if (value < facts.least) refuse_value(path, bound_text(facts.least) + " or more", json);
  if (value <= facts.above) {
    refuse_value(path, "a number above " + bound_text(facts.above), json);
  }
}

}  // namespace

std::string BodyObject::path(std::string_view name) const {
  return where.empty() ? std::string(name) : where + "." + std::string(name);
}

namespace detail {

void read_value(const MemberFacts& facts, const JsonView& json, const std::string& path,
                std::optional<std::string_view>& value) {
  if (!json.is_string()) refuse_value(path, "text", json);
  value = json.as_text();
  if (!is_choice(facts, *value)) refuse_value(path, names_of(facts.choices), json);
}

void read_value(const MemberFacts&, const JsonView& json, const std::string& path,
                std::optional<bool>& value) {
  if (!json.is_bool()) refuse_value(path, "true or false", json);
  value = json.as_bool();
}

void read_value(const MemberFacts& facts, const JsonView& json, const std::string& path,
                std::optional<double>& value) {
  if (!json.is_number()) refuse_value(path, "a number", json);
  check_bounds(facts, json, path);
  value = json.as_number();
}

void read_value(const MemberFacts& facts, const JsonView& json, const std::string& path,
                std::optional<std::int64_t>& value) {
  value = json.whole();
  if (!value) refuse_value(path, "a whole number", json);
  check_bounds(facts, json, path);
}

void read_value(const MemberFacts& facts, const JsonView& json, const std::string& path,
                std::optional<std::vector<std::string_view>>& value) {
  if (!json.is_array()) refuse_value(path, "a list", json);
  if (json.num_elements() == 0 && facts.least > 0)
    serve::refuse(path, "expected a list, which is not empty");
  value.emplace();
  value->reserve(json.num_elements());
  for (std::size_t i = 0; i < json.num_elements(); ++i) {
    const JsonView element = json.element(i);
    if (!element.is_string() || !is_choice(facts, element.as_text())) {
      refuse_value(element_path(path, i), facts.choices.empty() ? "text" : names_of(facts.choices),
                   element);
    }
    value->push_back(element.as_text());
  }
}

void read_value(const MemberFacts&, const JsonView& json, const std::string&,
                std::optional<JsonView>& value) {
  value = json;
}

void read_value(const MemberFacts& facts, const JsonView& json, const std::string&,
                NamedValues& values) {
  values.emplace_back(facts.name, json);
}

JsonObject value_schema(const MemberFacts& facts, ValueKind kind, SchemaSet& named) {
  constexpr const char* kTypes[] = {"string", "boolean", "number", "integer", "string"};
  if (kind == ValueKind::kJson) return facts.schema(named);
  JsonObject schema{{"type", kTypes[static_cast<std::size_t>(kind)]}};
  if (!facts.choices.empty()) schema.set("enum", facts.choices);
  if (kind == ValueKind::kTexts) return schema::list_of(schema, facts.least > 0 ? 1 : 0);
  if (std::isfinite(facts.least)) schema.set("minimum", facts.least);
  if (std::isfinite(facts.above)) schema.set("exclusiveMinimum", facts.above);
  return schema;
}

JsonObject member_schema(const MemberFacts& facts, ValueKind kind, SchemaSet& named) {
  const JsonObject value = value_schema(facts, kind, named);
  JsonObject schema{{"description", facts.about}};
  // An empty schema takes null as it is.
  return schema.merge(facts.is_required || value.empty() ? value : schema::nullable(value));
}

void refuse_missing(const MemberFacts& facts, const std::string& path) {
  serve::refuse(path, "expected a value, got nothing (" + std::string(facts.about) + ")",
                "missing_field");
}

void check_object(const JsonView& json, const std::string& where) {
  if (!json.is_object()) refuse_value(where, "an object", json);
}

void refuse_others(const JsonView& json, const BodyObject& object,
                   std::span<const std::string_view> known) {
  for (std::size_t i = 0; i < json.num_members(); ++i) {
    const std::string_view name = json.key(i);
    if (std::ranges::find(known, name) != known.end()) continue;
    const std::string_view given = name.substr(0, 100);
    const std::string path = object.path(shortened(name, 100));
    std::string message = "unknown field " + path;
    const auto nearest = std::ranges::min_element(
        known, {}, [&](std::string_view other) { return distance(other, given); });
    if (nearest != known.end() && distance(*nearest, given) <= 2) {
      message += "; did you mean " + std::string(*nearest) + "?";
    }
    throw ApiError(400, "unknown_field", message, path);
  }
}

}  // namespace detail

std::vector<JsonObject> query_parameters(const std::vector<QueryMember>& members) {
  std::vector<JsonObject> parameters;
  SchemaSet none;
  for (const QueryMember& member : members) {
    if (member.name.ends_with('.')) continue;
    JsonObject parameter{{"name", member.name},
                         {"in", "query"},
                         {"description", member.facts->about},
                         {"schema", detail::value_schema(*member.facts, member.kind, none)}};
    parameters.push_back(std::move(parameter));
  }
  return parameters;
}

}  // namespace fovea::serve
