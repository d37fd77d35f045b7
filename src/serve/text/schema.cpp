#include "serve/text/schema.h"

namespace fovea::serve {

JsonObject SchemaSet::refer(std::string_view name,
                            const std::function<JsonObject(SchemaSet&)>& make) {
  const auto [place, is_new] = schemas_.try_emplace(std::string(name));
  if (is_new) {
    JsonObject made = make(*this);
    schemas_.find(name)->second = std::move(made);
  }
  return {{"$ref", "#/components/schemas/" + std::string(name)}};
}

JsonObject SchemaSet::json() const {
  JsonObject all;
  for (const auto& [name, schema] : schemas_) all.set(name, schema);
  return all;
}

namespace schema {

JsonObject any(SchemaSet&) { return {}; }
JsonObject text(SchemaSet&) { return {{"type", "string"}}; }
JsonObject boolean(SchemaSet&) { return {{"type", "boolean"}}; }
JsonObject number(SchemaSet&) { return {{"type", "number"}}; }
JsonObject integer(SchemaSet&) { return {{"type", "integer"}}; }
JsonObject object(SchemaSet&) { return {{"type", "object"}, {"additionalProperties", true}}; }
JsonObject bytes(SchemaSet&) { return {{"type", "string"}, {"format", "binary"}}; }

JsonObject list_of(const JsonObject& element, std::size_t least) {
  JsonObject list{{"type", "array"}, {"items", element}};
  if (least > 0) list.set("minItems", least);
  return list;
}

JsonObject any_of(std::initializer_list<JsonObject> options) {
  JsonArray all;
  for (const JsonObject& option : options) all.add(option);
  return {{"anyOf", all}};
}

JsonObject nullable(const JsonObject& schema) { return any_of({schema, {{"type", "null"}}}); }

JsonObject object_of(SchemaSet& named, const ReplyObject& object) {
  JsonObject properties;
  JsonArray required;
  for (const ReplyMember& member : object.members) {
    JsonObject property{{"description", member.about}};
    properties.set(member.name, property.merge(member.schema(named)));
    if (member.is_always) required.add(member.name);
  }
  JsonObject schema{{"type", "object"}, {"properties", properties}};
  if (!required.empty()) schema.set("required", required);
  return schema;
}

}  // namespace schema
}  // namespace fovea::serve
