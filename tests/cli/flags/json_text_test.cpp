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

TEST(ParseJson, LeavesOutWhatIsNestedDeeply) {
  constexpr std::size_t kLevels = 1'000'000;  // a walk over these would overflow the stack
  const nlohmann::json value = parse_json(std::string(kLevels, '[') + std::string(kLevels, ']'));
  EXPECT_TRUE(value.is_array());
  EXPECT_LT(value.dump().size(), 200u);
}

TEST(ParseJson, RefusesALargeText) { EXPECT_TRUE(parse_json(large_text() + "{}").is_discarded()); }

TEST(Shown, IsOneShortLine) {
  EXPECT_EQ(shown(nlohmann::json{{"a", 1}}), R"({"a":1})");
  EXPECT_EQ(shown(std::string("two\nlines")), "two lines");
  EXPECT_EQ(shown(nlohmann::json(std::string(1000, 'x'))).size(), 60u);
}

TEST(ShownJson, SaysFromWhereOnATextIsNoJson) {
  EXPECT_EQ(shown_json("[1, 2]"), "[1, 2]");
  EXPECT_EQ(shown_json("{a: 1}"), "{a: 1}, which is no JSON from character 2 on");
  EXPECT_EQ(shown_json(R"({"a": 1,})"), R"({"a": 1,}, which is no JSON from character 9 on)");
  EXPECT_EQ(shown_json(R"({"a": 1}})"), R"({"a": 1}}, which is no JSON from character 9 on)");
  EXPECT_EQ(shown_json(R"({"a": 1)"), R"({"a": 1, which ends too early)");
  EXPECT_EQ(shown_json(""), "an empty text");
  EXPECT_EQ(shown_json(large_text()), "19.1 MiB");
}

}  // namespace
}  // namespace fovea::cli
