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
  EXPECT_EQ(parse_json(R"({"a": [1, "b"]})")["a"][1], "b");
  for (const char* text : {"", "{", "{} {}", "\"\xff\""}) {
    EXPECT_TRUE(parse_json(text).is_discarded()) << text;
  }
}

TEST(ParseJson, RefusesWhatIsNestedDeeply) {
  const auto nested = [](std::size_t levels) {
    return parse_json(std::string(levels, '[') + std::string(levels, ']'));
  };
  EXPECT_TRUE(nested(64).is_array());
  EXPECT_TRUE(nested(65).is_discarded());
  EXPECT_TRUE(nested(1'000'000).is_discarded());  // a walk over these would overflow the stack
}

/// 42 s of CPU for a megabyte, once. The test has no limit of its own; attack.S1.* has.
TEST(ParseJson, TakesLongListsOfObjects) {
  std::string text = "[";
  for (int i = 0; i < 300'000; ++i) text += "{},";
  EXPECT_EQ(parse_json(text + "0]").size(), 300'001u);
}

TEST(ParseJson, RefusesALargeText) { EXPECT_TRUE(parse_json(large_text() + "{}").is_discarded()); }

TEST(Shown, IsOneShortLine) {
  EXPECT_EQ(shown(nlohmann::json{{"a", 1}}), R"({"a":1})");
  EXPECT_EQ(shown(std::string("two\nlines")), "two lines");
  EXPECT_EQ(shown(nlohmann::json(std::string(1000, 'x'))).size(), 60u);
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
