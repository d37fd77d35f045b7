#pragma once

#include <string>

#include "support/json.h"

namespace fovea::serve::test {

using fovea::test::Json;

/// "array", "integer" and so on, as JSON Schema calls the type of a value.
inline std::string json_type(const Json& value) {
  if (value.is_null()) return "null";
  if (value.is_string()) return "string";
  if (value.is_array()) return "array";
  if (value.is_object()) return "object";
  const std::string text = value.dump();
  if (text == "true" || text == "false") return "boolean";
  return text.find_first_of(".e") == std::string::npos ? "integer" : "number";
}

inline std::string schema_mismatch(const Json& document, const Json& schema, const Json& value,
                                   const std::string& path = "reply");

inline std::string object_mismatch(const Json& document, const Json& schema, const Json& value,
                                   const std::string& path) {
  if (schema.contains("required")) {
    for (const Json& name : schema["required"]) {
      if (!value.contains(name.get<std::string>())) return path + " lacks " + name.dump();
    }
  }
  for (std::size_t i = 0; i < value.size(); ++i) {
    const std::string& name = value.names()[i];
    const bool is_known = schema.contains("properties") && schema["properties"].contains(name);
    if (!is_known && !schema.contains("additionalProperties")) return path + " has " + name;
    const Json& member = is_known ? schema["properties"][name] : schema["additionalProperties"];
    if (!member.is_object()) continue;
    const std::string problem =
        schema_mismatch(document, member, value.at(name), path + "." + name);
    if (!problem.empty()) return problem;
  }
  return {};
}

/// What of a value its schema in /openapi.json does not say; empty: nothing. Stricter than JSON
/// Schema: a member that is not described is a mismatch, unless the schema says that there are any.
/// @param document of which the schema is a part.
inline std::string schema_mismatch(const Json& document, const Json& schema, const Json& value,
                                   const std::string& path) {
  if (schema.contains("$ref")) {
    const std::string name = schema["$ref"].get<std::string>().substr(21);
    return schema_mismatch(document, document["components"]["schemas"][name], value, path);
  }
  if (schema.contains("anyOf")) {
    std::string all;
    for (const Json& option : schema["anyOf"]) {
      const std::string one = schema_mismatch(document, option, value, path);
      if (one.empty()) return {};
      all += (all.empty() ? "" : ", or ") + one;
    }
    return all;
  }
  if (!schema.contains("type")) return {};
  const std::string& wanted = schema["type"];
  const std::string type = json_type(value);
  if (type != wanted && !(wanted == "number" && type == "integer")) {
    return path + " is " + type + ", not " + wanted;
  }
  if (type == "object") return object_mismatch(document, schema, value, path);
  if (type != "array") return {};
  for (const Json& element : value) {
    const std::string inner = schema_mismatch(document, schema["items"], element, path + "[]");
    if (!inner.empty()) return inner;
  }
  return {};
}

}  // namespace fovea::serve::test
