#include "flags/json_text.h"

#include <gtest/gtest.h>

namespace fovea::cli {
namespace {

/// More than is read.
std::string large_text() {
  std::string text;
  text.resize(20'000'000, ' ');
  return text;
}

TEST(ParseJson, ReadsJsonAndNothingElse) {
  const std::string json = R"({"a": [1, "b"]})";
  EXPECT_EQ(parse_json(json).value().root().at("a").element(1).as_text(), "b");
  for (const char* text : {"", "{", "{} {}", "\"\xff\""}) {
    EXPECT_FALSE(parse_json(text)) << text;
  }
}

TEST(ParseJson, RefusesWhatIsNestedDeeply) {
  const auto is_read = [](std::size_t levels) {
    return parse_json(std::string(levels, '[') + std::string(levels, ']')).has_value();
  };
  EXPECT_TRUE(is_read(64));
  EXPECT_FALSE(is_read(65));
  EXPECT_FALSE(is_read(1'000'000));  // a walk over these would overflow the stack
}

/// 42 s of CPU for a megabyte, once. The test has no limit of its own; attack.S1.* has.
TEST(ParseJson, TakesLongListsOfObjects) {
  std::string text = "[";
  for (int i = 0; i < 300'000; ++i) text += "{},";
  text += "0]";
  EXPECT_EQ(parse_json(text).value().root().num_elements(), 300'001u);
}

TEST(ParseJson, RefusesALargeText) { EXPECT_FALSE(parse_json(large_text() + "{}")); }

TEST(ParseJsonObject, RefusesWhatIsNone) {
  EXPECT_TRUE(parse_json_object("{}"));
  for (const char* text : {"[]", "1", "null", "{"}) EXPECT_FALSE(parse_json_object(text)) << text;
}

TEST(Shown, IsOneShortLine) {
  const JsonDocument object = JsonDocument::parse(R"({"a" : 1})", "a");
  EXPECT_EQ(shown(object.root()), R"({"a":1})");
  EXPECT_EQ(shown(std::string("two\nlines")), "two lines");
  EXPECT_EQ(shown(std::string(1000, 'x')).size(), 60u);
}

TEST(ShownJson, SaysFromWhereOnATextIsNoJson) {
  EXPECT_EQ(shown_json("[1, 2]"), "[1, 2]");
  EXPECT_EQ(shown_json("{a: 1}"), "{a: 1} (line 1, column 2: syntax error: expected a key)");
  EXPECT_EQ(shown_json(R"({"a": 1,})"),
            R"({"a": 1,} (line 1, column 9: syntax error: expected a key))");
  EXPECT_EQ(shown_json(R"({"a": 1}})"),
            R"({"a": 1}} (line 1, column 9: syntax error: expected the end of the text))");
  EXPECT_EQ(shown_json(R"({"a": 1)"),
            R"({"a": 1 (line 1, column 8: syntax error: expected ',' or '}', but the text ends))");
  EXPECT_EQ(shown_json(""), "an empty text");
  EXPECT_EQ(shown_json(large_text()), "19.1 MiB");
}

}  // namespace
}  // namespace fovea::cli
