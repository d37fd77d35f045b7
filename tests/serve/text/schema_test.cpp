#include "serve/text/schema.h"

#include <gtest/gtest.h>

#include <array>

#include "support/json.h"

namespace fovea::serve {
namespace {

using fovea::test::Json;

constexpr std::array<ReplyMember, 1> kLeafMembers{{{"size", schema::integer, "Its size"}}};
constexpr ReplyObject kLeaf{"Leaf", kLeafMembers};
constexpr std::array<ReplyMember, 3> kTreeMembers{
    {{"leaves", schema::list<schema::reply<kLeaf>, 1>, "Its leaves"},
     {"first", schema::or_null<schema::reply<kLeaf>>, "The first", false},
     {"other", schema::either<schema::text, schema::map<schema::number>>, "More", false}}};
constexpr ReplyObject kTree{"Tree", kTreeMembers};

TEST(SchemaSet, MakesEachSchemaOnceByItsName) {
  SchemaSet named;
  const Json reference = Json::parse(to_json_text(schema::reply<kTree>(named)));
  EXPECT_EQ(reference, Json::parse(R"({"$ref": "#/components/schemas/Tree"})"));
  (void)schema::reply<kTree>(named);
  const Json all = Json::parse(to_json_text(named.json()));
  EXPECT_EQ(all.size(), 2U);
  EXPECT_EQ(all["Leaf"]["properties"]["size"],
            Json::parse(R"({"description": "Its size", "type": "integer"})"));
}

TEST(Schema, IsThatOfJsonSchema) {
  SchemaSet named;
  (void)schema::reply<kTree>(named);
  const Json tree = Json::parse(to_json_text(named.json()))["Tree"];
  EXPECT_EQ(tree["type"], "object");
  EXPECT_EQ(tree["required"], Json::parse(R"(["leaves"])"));
  const Json& properties = tree["properties"];
  EXPECT_EQ(properties["leaves"]["items"]["$ref"], "#/components/schemas/Leaf");
  EXPECT_EQ(properties["leaves"]["minItems"], 1);
  EXPECT_EQ(properties["first"]["anyOf"][1]["type"], "null");
  EXPECT_EQ(properties["other"]["anyOf"][1]["additionalProperties"]["type"], "number");
}

}  // namespace
}  // namespace fovea::serve
