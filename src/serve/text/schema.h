#pragma once

#include <functional>
#include <initializer_list>
#include <map>
#include <span>
#include <string>
#include <string_view>

#include "core/json_writer.h"

namespace fovea::serve {

/// The schemas of a document that have names. Others refer to them.
class SchemaSet {
 public:
  /// A reference to the schema of this name, which is made unless it is there.
  [[nodiscard]] JsonObject refer(std::string_view name,
                                 const std::function<JsonObject(SchemaSet&)>& make);
  /// All of them, by their names.
  [[nodiscard]] JsonObject json() const;

 private:
  std::map<std::string, JsonObject, std::less<>> schemas_;
};

/// Makes the JSON Schema of a value; what has a name goes into the set.
/// Source: JSON Schema, draft 2020-12; OpenAPI 3.1.
using SchemaOf = JsonObject (*)(SchemaSet& named);

/// A member of an object that the server sends. What clients send is in object_table.h.
struct ReplyMember {
  std::string_view name;
  SchemaOf schema;
  std::string_view about;
  bool is_always = true;  ///< whether every such object has it
};

struct ReplyObject {
  std::string_view name;  ///< of its schema
  std::span<const ReplyMember> members;
};

/// The schemas of values, as SchemaOf.
namespace schema {

[[nodiscard]] JsonObject any(SchemaSet&);
[[nodiscard]] JsonObject text(SchemaSet&);
[[nodiscard]] JsonObject boolean(SchemaSet&);
[[nodiscard]] JsonObject number(SchemaSet&);
[[nodiscard]] JsonObject integer(SchemaSet&);
[[nodiscard]] JsonObject object(SchemaSet&);  ///< with any members
[[nodiscard]] JsonObject bytes(SchemaSet&);   ///< a body that is no JSON

[[nodiscard]] JsonObject list_of(const JsonObject& element, std::size_t least = 0);
[[nodiscard]] JsonObject any_of(std::initializer_list<JsonObject> options);
/// A value or null.
[[nodiscard]] JsonObject nullable(const JsonObject& schema);
[[nodiscard]] JsonObject object_of(SchemaSet& named, const ReplyObject& object);

template <SchemaOf kElement, std::size_t kLeast = 0>
[[nodiscard]] JsonObject list(SchemaSet& named) {
  return list_of(kElement(named), kLeast);
}

template <SchemaOf... kOptions>
[[nodiscard]] JsonObject either(SchemaSet& named) {
  return any_of({kOptions(named)...});
}

template <SchemaOf kValue>
[[nodiscard]] JsonObject or_null(SchemaSet& named) {
  return nullable(kValue(named));
}

/// An object of any names with values of one kind.
template <SchemaOf kValue>
[[nodiscard]] JsonObject map(SchemaSet& named) {
  return {{"type", "object"}, {"additionalProperties", kValue(named)}};
}

/// An object of a reply, by its name.
template <const ReplyObject& kObject>
[[nodiscard]] JsonObject reply(SchemaSet& named) {
  return named.refer(kObject.name, [](SchemaSet& set) { return object_of(set, kObject); });
}

}  // namespace schema
}  // namespace fovea::serve
