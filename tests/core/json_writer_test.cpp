#include "core/json_writer.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/json.h"
#include "support/property.h"

namespace fovea {
namespace {

TEST(JsonWriter, WritesAllThatJsonHas) {
  EXPECT_EQ(to_json_text(nullptr), "null");
  EXPECT_EQ(to_json_text(true), "true");
  EXPECT_EQ(to_json_text(-3), "-3");
  EXPECT_EQ(to_json_text(std::uint8_t{200}), "200");
  EXPECT_EQ(to_json_text(std::numeric_limits<std::int64_t>::min()), "-9223372036854775808");
  EXPECT_EQ(to_json_text(std::numeric_limits<std::uint64_t>::max()), "18446744073709551615");
  EXPECT_EQ(to_json_text("text"), "\"text\"");
  EXPECT_EQ(to_json_text(std::optional<int>()), "null");
  EXPECT_EQ(to_json_text(std::optional(4)), "4");
  EXPECT_EQ(to_json_text(std::vector<std::string>{"a", "b"}), R"(["a","b"])");
  EXPECT_EQ(to_json_text(std::map<std::string, int>{{"b", 1}, {"a", 2}}), R"({"a":2,"b":1})");
  EXPECT_EQ(to_json_text(std::vector<std::pair<std::string, bool>>()), "{}");
  EXPECT_EQ(to_json_text(std::array<std::vector<int>, 2>{{{1, 2}, {}}}), "[[1,2],[]]");
}

TEST(JsonWriter, WritesObjectsInTheOrderOfTheirMembers) {
  JsonObject object{{"b", 1}, {"a", JsonObject()}};
  object.set("list", JsonArray::of("x", 2, JsonArray())).set("c\n", 0.5);
  object.merge(JsonObject()).merge(JsonObject{{"d", nullptr}});
  EXPECT_EQ(to_json_text(object), R"({"b":1,"a":{},"list":["x",2,[]],"c\n":0.5,"d":null})");
  EXPECT_TRUE(JsonObject().empty());
  EXPECT_FALSE(object.empty());
}

TEST(JsonWriter, WritesListsElementByElement) {
  JsonArray list;
  EXPECT_TRUE(list.empty());
  list.add(1).add("").add(JsonObject{{"a", true}});
  EXPECT_EQ(to_json_text(list), R"([1,"",{"a":true}])");
}

TEST(JsonWriter, WritesWhatWasRead) {
  const std::string text =
      R"({"a":[1,-2,2.5,1e+30,null,true,"x\n"],"b":{"c":{}},"d":18446744073709551615})";
  EXPECT_EQ(to_json_text(JsonDocument::parse(text, "x").root()), text);
}

TEST(JsonNumber, IsTheShortestThatReadsBack) {
  const std::pair<double, const char*> numbers[] = {{0, "0.0"},
                                                    {-0.0, "-0.0"},
                                                    {1, "1.0"},
                                                    {-12.5, "-12.5"},
                                                    {0.1, "0.1"},
                                                    {100, "100.0"},
                                                    {1e14, "100000000000000.0"},
                                                    {1e15, "1e+15"},
                                                    {1234567890123456, "1.234567890123456e+15"},
                                                    {0.00012, "0.00012"},
                                                    {0.000012, "1.2e-05"},
                                                    {5e-324, "5e-324"},
                                                    {0.1F, "0.10000000149011612"}};
  for (const auto& [value, text] : numbers) EXPECT_EQ(json_number(value), text);
}

TEST(JsonNumber, IsNullWhereJsonHasNone) {
  for (const double value : {std::nan(""), HUGE_VAL, -HUGE_VAL}) {
    EXPECT_EQ(json_number(value), "null");
  }
}

TEST(JsonNumber, IsUndoneByParsingProperty) {
  test::for_all(500, [](auto& generator) {
    const double value =
        std::ldexp(static_cast<double>(test::uniform(generator, -999'999, 999'999)),
                   static_cast<int>(test::uniform(generator, -1000, 900)));
    EXPECT_EQ(JsonDocument::parse(json_number(value), "x").root().as_number(), value);
  });
}

TEST(JsonQuote, EscapesWhatJsonRequires) {
  EXPECT_EQ(json_quote(""), "\"\"");
  EXPECT_EQ(json_quote("a\"b\\c\n\x01\x7f"), "\"a\\\"b\\\\c\\n\\u0001\x7f\"");
  EXPECT_EQ(json_quote("\b\f\r\t"), R"("\b\f\r\t")");
  EXPECT_EQ(json_quote("\u00e4\u4e16"), "\"\u00e4\u4e16\"");
}

TEST(JsonQuote, ReplacesBytesThatAreNotUtf8) { EXPECT_EQ(json_quote("a\xff"), "\"a\ufffd\""); }

TEST(JsonQuote, IsUndoneByParsingProperty) {
  test::for_all(200, [](auto& generator) {
    std::string text(static_cast<std::size_t>(test::uniform(generator, 0, 20)), ' ');
    for (char& c : text) c = static_cast<char>(test::uniform(generator, 1, 127));
    EXPECT_EQ(JsonDocument::parse(json_quote(text), "x").root().as_string(), text);
  });
}

TEST(JsonInAscii, EscapesAllElse) {
  EXPECT_EQ(json_in_ascii("{\"\u00e4\":\"\U0001f600\x7f\"}"), R"({"\u00e4":"\ud83d\ude00\u007f"})");
}

TEST(JsonInLines, HasALineForEachMemberAndElement) {
  const JsonObject object{{"a", JsonArray::of(1, "{,\"[\\")},
                          {"b", JsonObject()},
                          {"c", JsonArray()},
                          {"d", JsonObject{{"e", 2}}}};
  EXPECT_EQ(json_in_lines(to_json_text(object)), R"({
  "a": [
    1,
    "{,\"[\\"
  ],
  "b": {},
  "c": [],
  "d": {
    "e": 2
  }
})");
}

}  // namespace
}  // namespace fovea
