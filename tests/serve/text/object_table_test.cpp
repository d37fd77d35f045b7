#include "serve/text/object_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "serve/rows/rows_fixture.h"
#include "support/json.h"

namespace fovea::serve {
namespace {

using fovea::test::Json;
using test::refusal;
using testing::ElementsAre;
using testing::HasSubstr;

struct Base {
  std::optional<std::string_view> name;
};
struct Everything : BodyObject, Base {
  std::optional<bool> truth;
  std::optional<double> rate;
  std::optional<std::int64_t> count;
  std::optional<std::vector<std::string_view>> kinds;
  std::optional<JsonView> inner;
  NamedValues gathered;
};

constexpr std::array<std::string_view, 2> kNames{"a", "b"};
constexpr std::array<Member<Base>, 1> kBaseMembers{
    {{&Base::name, {.name = "name", .about = "A name", .choices = kNames}}}};
constexpr std::array<Member<Everything>, 8> kOwn{
    {{&Everything::truth, {.name = "truth", .about = "A truth"}},
     {&Everything::rate, {.name = "rate", .about = "A rate", .above = 0}},
     {&Everything::count, {.name = "count", .about = "A count", .least = 1, .is_required = true}},
     {&Everything::kinds, {.name = "kinds", .about = "Names", .choices = kNames, .least = 1}},
     {&Everything::inner, {.name = "inner", .about = "Any object", .schema = schema::object}},
     {&Everything::gathered, {.name = "one", .about = "Gathered"}},
     {&Everything::gathered, {.name = "two", .about = "Gathered"}},
     {Refused{"not here", "text_not_supported"}, {.name = "texts", .about = ""}}}};
constexpr auto kMembers = joined<Everything>(kBaseMembers, kOwn);
constexpr ObjectTable<Everything> kStrict{"Everything", kMembers, Others::kRefused};
constexpr ObjectTable<Everything> kOpen{"Everything", kMembers};

/// What is wrong with an object.
ApiError refused(const std::string& text, const ObjectTable<Everything>& table = kStrict) {
  const SharedJson json = parse_json_object(text);
  return refusal([&] { (void)read_object(table, json->root(), "items[2]"); });
}

TEST(ReadObject, ReadsMembersToTheirPlaces) {
  const SharedJson json = parse_json_object(
      R"({"name": "b", "truth": true, "rate": 0.5, "count": 3, "kinds": ["a", "b"],
          "inner": {"x": 1}, "two": 2, "one": 1})");
  const Everything read = read_object(kStrict, json->root());
  EXPECT_EQ(read.name, "b");
  EXPECT_EQ(read.truth, true);
  EXPECT_EQ(read.rate, 0.5);
  EXPECT_EQ(read.count, 3);
  EXPECT_THAT(*read.kinds, ElementsAre("a", "b"));
  EXPECT_EQ(read.inner->at("x").as_int(), 1);
  ASSERT_EQ(read.gathered.size(), 2U);
  EXPECT_EQ(read.gathered[0].first, "one") << "the order is that of the table";
  EXPECT_EQ(read.path("rate"), "rate");
}

TEST(ReadObject, TakesWholeNumbersHoweverTheyAreWritten) {
  for (const char* text : {R"({"count": 300})", R"({"count": 300.0})", R"({"count": 3e2})"}) {
    const SharedJson json = parse_json_object(text);
    EXPECT_EQ(read_object(kStrict, json->root()).count, 300) << text;
  }
}

TEST(ReadObject, TakesNullForAbsence) {
  const SharedJson json = parse_json_object(R"({"count": 1, "name": null, "texts": null})");
  EXPECT_EQ(read_object(kStrict, json->root()).name, std::nullopt);
}

TEST(ReadObject, SaysWhereAndWhatIsWrong) {
  struct Case {
    const char* text;
    const char* param;
    const char* what;
  };
  for (const Case& wrong :
       {Case{R"({"count": 1, "name": 1})", "items[2].name", "expected text, got 1"},
        Case{R"({"count": 1, "name": "c"})", "items[2].name", "expected one of a, b, got \"c\""},
        Case{R"({"count": 1, "truth": 1})", "items[2].truth", "expected true or false, got 1"},
        Case{R"({"count": 1, "rate": "x"})", "items[2].rate", "expected a number, got \"x\""},
        Case{R"({"count": 1, "rate": 0})", "items[2].rate", "expected a number above 0, got 0"},
        Case{R"({"count": 0})", "items[2].count", "expected 1 or more, got 0"},
        Case{R"({"count": 1.5})", "items[2].count", "expected a whole number, got 1.5"},
        Case{R"({"count": 18446744073709551615})", "items[2].count", "expected a whole number"},
        Case{R"({"count": 1, "kinds": "a"})", "items[2].kinds", "expected a list, got \"a\""},
        Case{R"({"count": 1, "kinds": []})", "items[2].kinds", "which is not empty"},
        Case{R"({"count": 1, "kinds": ["a", 7]})", "items[2].kinds[1]", "one of a, b, got 7"}}) {
    const ApiError error = refused(wrong.text);
    EXPECT_EQ(error.code(), "invalid_value") << wrong.text;
    EXPECT_EQ(error.param(), wrong.param);
    EXPECT_THAT(error.what(), HasSubstr(wrong.what));
  }
  const SharedJson list = parse_json_object(R"({"list": []})");
  EXPECT_THAT(refusal([&] { (void)read_object(kOpen, list->root().at("list"), "x"); }).what(),
              HasSubstr("x: expected an object"));
}

TEST(ReadObject, RefusesWhatIsMissingAndWhatItsTableRefuses) {
  EXPECT_EQ(refused("{}").code(), "missing_field");
  EXPECT_EQ(refused("{}").param(), "items[2].count");
  const ApiError texts = refused(R"({"count": 1, "texts": []})");
  EXPECT_EQ(texts.code(), "text_not_supported");
  EXPECT_STREQ(texts.what(), "items[2].texts: not here");
}

TEST(ReadObject, NamesTheNearestMemberForAnUnknownOne) {
  const ApiError error = refused(R"({"coumt": 1})");
  EXPECT_EQ(error.code(), "unknown_field") << "rather than what is missing, which was meant";
  EXPECT_STREQ(error.what(), "unknown field items[2].coumt; did you mean count?");
  EXPECT_EQ(refused(R"({"count": 1, "far away": 1})", kOpen).code(), "nothing was refused");
}

TEST(Describe, SaysOfEachMemberWhatIsRead) {
  SchemaSet named;
  const Json reference = Json::parse(to_json_text(describe(kStrict, named)));
  EXPECT_EQ(reference["$ref"], "#/components/schemas/Everything");
  const Json schema = Json::parse(to_json_text(named.json()))["Everything"];
  EXPECT_EQ(schema["required"], Json::parse(R"(["count"])"));
  EXPECT_EQ(schema["additionalProperties"], false);
  EXPECT_EQ(schema["properties"].size(), 8U) << "all but what is refused";
  EXPECT_EQ(schema["properties"]["count"],
            Json::parse(R"({"description": "A count", "type": "integer", "minimum": 1})"));
  EXPECT_EQ(schema["properties"]["name"], Json::parse(R"({"description": "A name", "anyOf": [
              {"type": "string", "enum": ["a", "b"]}, {"type": "null"}]})"));
  EXPECT_EQ(schema["properties"]["rate"]["anyOf"][0],
            Json::parse(R"({"type": "number", "exclusiveMinimum": 0})"));
  EXPECT_EQ(schema["properties"]["kinds"]["anyOf"][0]["minItems"], 1);
  EXPECT_EQ(schema["properties"]["one"], Json::parse(R"({"description": "Gathered"})"));
}

TEST(QueryParameters, AreMembersThatAQuerySpells) {
  std::vector<QueryMember> members;
  add_query_members(kStrict, "all.", members);
  members.push_back({"others.", nullptr, detail::ValueKind::kNumber});
  const Json json = Json::parse(to_json_text(query_parameters(members)));
  ASSERT_EQ(json.size(), 5U) << "no objects, none that is refused, no prefix";
  EXPECT_EQ(json[0]["name"], "all.name");
  EXPECT_EQ(json[2]["schema"]["type"], "number");
  EXPECT_EQ(json[4]["schema"]["type"], "array");
}

}  // namespace
}  // namespace fovea::serve
