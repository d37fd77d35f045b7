#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "core/json_writer.h"
#include "serve/api_error.h"
#include "serve/text/json.h"
#include "serve/text/schema.h"

// An object that clients send is said once, by a table: read_object() reads it, and describe()
// makes the part of /openapi.json about it. What is not in the table is neither read nor described.

namespace fovea::serve {

/// Base of what a table reads into: where the object stands in its body.
struct BodyObject {
  std::string where;  ///< "items[2]"; empty: it is the body

  /// "items[2].fps": the path of a member.
  [[nodiscard]] std::string path(std::string_view name) const;
};

/// Members of several names that are gathered in one list, in the order of the table.
using NamedValues = std::vector<std::pair<std::string_view, JsonView>>;

/// In place of a member: it is known, and refused.
struct Refused {
  const char* why;
  const char* code = "invalid_value";
};

/// Where a member is read to. Its type is what it may be: text, a truth, a number, a whole number,
/// a list of texts, any JSON. Absent and null leave it empty.
template <class T>
using Place = std::variant<std::optional<std::string_view> T::*, std::optional<bool> T::*,
                           std::optional<double> T::*, std::optional<std::int64_t> T::*,
                           std::optional<std::vector<std::string_view>> T::*,
                           std::optional<JsonView> T::*, NamedValues T::*, Refused>;

/// What is known of a member beside its place.
struct MemberFacts {
  std::string_view name;
  std::string_view about;
  std::span<const std::string_view> choices = {};  ///< of a text, or of each of a list; empty: any
  double least = -std::numeric_limits<double>::infinity();  ///< of a number
  double above = -std::numeric_limits<double>::infinity();  ///< likewise, itself excluded
  SchemaOf schema = schema::any;                            ///< of any JSON
  bool is_required = false;
};

template <class T>
struct Member {
  Place<T> place;
  MemberFacts facts;
};

/// What happens to members that are not in a table.
enum class Others : std::uint8_t { kIgnored, kRefused };

/// The table of an object that is read into a T.
template <class T>
struct ObjectTable {
  std::string_view name;  ///< of its schema
  std::span<const Member<T>> members;
  Others others = Others::kIgnored;
};

namespace detail {

void read_value(const MemberFacts& facts, const JsonView& json, const std::string& path,
                std::optional<std::string_view>& value);
void read_value(const MemberFacts& facts, const JsonView& json, const std::string& path,
                std::optional<bool>& value);
void read_value(const MemberFacts& facts, const JsonView& json, const std::string& path,
                std::optional<double>& value);
void read_value(const MemberFacts& facts, const JsonView& json, const std::string& path,
                std::optional<std::int64_t>& value);
void read_value(const MemberFacts& facts, const JsonView& json, const std::string& path,
                std::optional<std::vector<std::string_view>>& value);
void read_value(const MemberFacts& facts, const JsonView& json, const std::string& path,
                std::optional<JsonView>& value);
void read_value(const MemberFacts& facts, const JsonView& json, const std::string& path,
                NamedValues& values);

/// The type of a value in a schema, and whether a query spells it as something else than text.
enum class ValueKind : std::uint8_t { kText, kBool, kNumber, kInteger, kTexts, kJson, kRefused };
template <class T>
[[nodiscard]] ValueKind kind_of(const Place<T>& place) {
  constexpr ValueKind kKinds[] = {ValueKind::kText,    ValueKind::kBool,   ValueKind::kNumber,
                                  ValueKind::kInteger, ValueKind::kTexts,  ValueKind::kJson,
                                  ValueKind::kJson,    ValueKind::kRefused};
  return kKinds[place.index()];
}

[[nodiscard]] JsonObject value_schema(const MemberFacts& facts, ValueKind kind, SchemaSet& named);
/// The value, or null if the member need not be there; with its description.
[[nodiscard]] JsonObject member_schema(const MemberFacts& facts, ValueKind kind, SchemaSet& named);

[[noreturn]] void refuse_missing(const MemberFacts& facts, const std::string& path);
void check_object(const JsonView& json, const std::string& where);
void refuse_others(const JsonView& json, const BodyObject& object,
                   std::span<const std::string_view> known);

}  // namespace detail

/// Reads a member. @throws as read_object().
template <class T>
void read_member(const Member<T>& member, const JsonView& json, T& object) {
  const std::string path = object.path(member.facts.name);
  if (const auto* const refused = std::get_if<Refused>(&member.place)) {
    refuse(path, refused->why, refused->code);
  }
  const auto read = [&](const auto& place) {
    if constexpr (!std::is_same_v<decltype(place), const Refused&>) {
      detail::read_value(member.facts, json, path, object.*place);
    }
  };
  std::visit(read, member.place);
}

/// Reads an object. Texts and values are valid as long as its document.
/// @param where its path in the body.
/// @throws ApiError(400, "invalid_value") for what is no object, and for members of another type or
/// beyond their bounds; "unknown_field" with the nearest name; "missing_field"; what Refused says.
template <class T>
[[nodiscard]] T read_object(const ObjectTable<T>& table, const JsonView& json,
                            const std::string& where = {}) {
  T object;
  object.where = where;
  detail::check_object(json, object.where);
  const MemberFacts* missing = nullptr;
  for (const Member<T>& member : table.members) {
    const std::optional<JsonView> value = json.find(member.facts.name);
    if (value) {
      read_member(member, *value, object);
    } else if (member.facts.is_required && missing == nullptr) {
      missing = &member.facts;
    }
  }
  if (table.others == Others::kRefused) {
    std::vector<std::string_view> known;
    for (const Member<T>& member : table.members) known.push_back(member.facts.name);
    detail::refuse_others(json, object, known);
  }
  if (missing != nullptr) detail::refuse_missing(*missing, object.path(missing->name));
  return object;
}

/// A reference to the schema of an object.
template <class T>
[[nodiscard]] JsonObject describe(const ObjectTable<T>& table, SchemaSet& named) {
  return named.refer(table.name, [&table](SchemaSet& set) {
    JsonObject properties;
    JsonArray required;
    for (const auto& [place, facts] : table.members) {
      const detail::ValueKind kind = detail::kind_of(place);
      if (kind == detail::ValueKind::kRefused) continue;
      properties.set(facts.name, detail::member_schema(facts, kind, set));
      if (facts.is_required) required.add(facts.name);
    }
    JsonObject schema{{"type", "object"},
                      {"properties", properties},
                      {"additionalProperties", table.others == Others::kIgnored}};
    if (!required.empty()) schema.set("required", required);
    return schema;
  });
}

namespace schema {

/// The schema of an object of a body, as SchemaOf.
template <const auto& kTable>
[[nodiscard]] JsonObject body(SchemaSet& named) {
  return describe(kTable, named);
}

}  // namespace schema

/// A member of a base of T as one of T.
template <class T, class Base>
[[nodiscard]] constexpr Member<T> member_of(const Member<Base>& member) {
  return {std::visit([](const auto& of) { return Place<T>(of); }, member.place), member.facts};
}

/// Members of T and of its bases one after the other, for tables with members in common.
template <class T, class... Parts>
[[nodiscard]] constexpr auto joined(const Parts&... parts) {
  std::array<Member<T>, (std::tuple_size_v<Parts> + ...)> all{};
  std::size_t next = 0;
  const auto add = [&](const auto& part) {
    for (const auto& member : part) all[next++] = member_of<T>(member);
  };
  (add(parts), ...);
  return all;
}

/// A member that a query may have, by its whole name: "output.format".
struct QueryMember {
  std::string name;
  const MemberFacts* facts;
  detail::ValueKind kind;
};

/// Adds the members of a table that a query can spell. @param prefix "output."
template <class T>
void add_query_members(const ObjectTable<T>& table, const std::string& prefix,
                       std::vector<QueryMember>& members) {
  for (const auto& [place, facts] : table.members) {
    const detail::ValueKind kind = detail::kind_of(place);
    if (kind == detail::ValueKind::kJson || kind == detail::ValueKind::kRefused) continue;
    members.push_back({prefix + std::string(facts.name), &facts, kind});
  }
}

/// The parameters of a route that takes them.
[[nodiscard]] std::vector<JsonObject> query_parameters(const std::vector<QueryMember>& members);

}  // namespace fovea::serve
