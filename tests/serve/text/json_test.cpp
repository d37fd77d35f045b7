#include "serve/text/json.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "serve/api_error.h"

namespace fovea::serve {
namespace {

using testing::HasSubstr;

template <typename Call>
ApiError refusal(Call&& call) {
  try {
    call();
  } catch (const ApiError& error) {
    return error;
  }
  return {0, "nothing was refused", ""};
}

TEST(IsUtf8, TakesWholeCharactersOnly) {
  for (const char* text : {"", "plain", "\xc3\xa9", "\xf0\x9f\x99\x82"}) EXPECT_TRUE(is_utf8(text));
  for (const char* text : {"\xff", "\xc3", "\xc0\xaf", "\xed\xa0\x80", "a\x80"}) {
    EXPECT_FALSE(is_utf8(text)) << text;
  }
}

TEST(ParseJsonObject, ReadsAnObject) {
  EXPECT_EQ(parse_json_object(R"({"a": [1, {"b": null}]})")["a"][0], 1);
}

TEST(ParseJsonObject, RefusesWhatIsNoObject) {
  for (const char* text :
       {"", "[]", "1", "null", "{", "{\"a\":}", "{} {}", "{\"a\":\"\xff\"}", "nan"}) {
    EXPECT_EQ(refusal([&] { (void)parse_json_object(text); }).code(), "invalid_json") << text;
  }
}

TEST(ParseJsonObject, RefusesAKeyThatIsGivenTwice) {
  EXPECT_THAT(refusal([] { (void)parse_json_object(R"({"a":{"b":1,"c":2,"b":3}})"); }).what(),
              HasSubstr("gives \"b\" twice"));
  EXPECT_NO_THROW((void)parse_json_object(R"({"a":{"b":1},"b":{"b":2}})"));
}

TEST(ParseJsonObject, TakesNoMoreLevelsThanItSays) {
  const auto nested = [](int levels) {
    return "{\"a\":" + std::string(static_cast<std::size_t>(levels) - 1, '[') +
           std::string(static_cast<std::size_t>(levels) - 1, ']') + "}";
  };
  EXPECT_NO_THROW((void)parse_json_object(nested(kMaxJsonDepth)));
  EXPECT_THAT(refusal([&] { (void)parse_json_object(nested(kMaxJsonDepth + 1)); }).what(),
              HasSubstr("nested deeper than 32"));
  EXPECT_EQ(refusal([&] { (void)parse_json_object(nested(1'000'000)); }).code(), "invalid_json");
}

TEST(ToText, ReplacesBytesThatAreNoUtf8) { EXPECT_EQ(to_text(Json("a\xff")), "\"a\xef\xbf\xbd\""); }

TEST(Fields, ReadsMembersByType) {
  const Json json = parse_json_object(R"({"t":"x","b":true,"n":1.5,"i":-3,"z":null})");
  Fields fields(json, "");
  EXPECT_EQ(fields.text("t"), "x");
  EXPECT_EQ(fields.boolean("b"), true);
  EXPECT_EQ(fields.number("n"), 1.5);
  EXPECT_EQ(fields.integer("i"), -3);
  EXPECT_EQ(fields.text("z"), std::nullopt);
  EXPECT_EQ(fields.text("absent"), std::nullopt);
  EXPECT_NO_THROW(fields.refuse_others());
}

TEST(Fields, SaysWhereAndWhatIsWrong) {
  const Json json = parse_json_object(R"({"t":1,"i":1.5,"large":18446744073709551615,"c":"z"})");
  Fields fields(json, "items[2]");
  const ApiError error = refusal([&] { (void)fields.text("t"); });
  EXPECT_EQ(error.param(), "items[2].t");
  EXPECT_STREQ(error.what(), "items[2].t: expected text, got 1");
  EXPECT_THAT(refusal([&] { (void)fields.integer("i"); }).what(),
              HasSubstr("a whole number, got 1.5"));
  EXPECT_THAT(refusal([&] { (void)fields.integer("large"); }).what(), HasSubstr("a whole number"));
  EXPECT_THAT(refusal([&] {
                (void)fields.choice("c", {"a", "b"});
              }).what(),
              HasSubstr("expected one of a, b, got \"z\""));
  EXPECT_THAT(refusal([&] { (void)fields.boolean("t"); }).what(), HasSubstr("true or false"));
}

TEST(Fields, NamesTheNearestFieldForAnUnknownOne) {
  const Json json = parse_json_object(R"({"formatt":"json"})");
  Fields fields(json, "output");
  (void)fields.text("format");
  const ApiError error = refusal([&] { fields.refuse_others(); });
  EXPECT_EQ(error.code(), "unknown_field");
  EXPECT_STREQ(error.what(), "unknown field output.formatt; did you mean format?");
}

}  // namespace
}  // namespace fovea::serve
