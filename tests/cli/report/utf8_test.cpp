#include "report/utf8.h"

#include <gtest/gtest.h>

namespace fovea::cli {
namespace {

TEST(FirstCharacter, ReadsCharactersOfEveryLength) {
  EXPECT_EQ(first_character("a").code, U'a');
  EXPECT_EQ(first_character("\u00f6x").code, U'\u00f6');
  EXPECT_EQ(first_character("\u20acx").code, U'\u20ac');
  EXPECT_EQ(first_character("\U0001f600x").code, U'\U0001f600');
  EXPECT_EQ(first_character("\U0001f600x").bytes, 4u);
}

TEST(FirstCharacter, RefusesWhatIsNotUtf8) {
  for (const char* text : {"\x80", "\xc3", "\xc3x", "\xc0\xaf", "\xe0\x80\xaf", "\xed\xa0\x80",
                           "\xf4\x90\x80\x80", "\xf5\x80\x80\x80", "\xff"}) {
    EXPECT_EQ(first_character(text).code, std::nullopt);
    EXPECT_EQ(first_character(text).bytes, 1u);
  }
}

TEST(ReplaceCharacters, ReplacesBadBytesAndUnwantedCharacters) {
  const auto is_a = [](char32_t code) { return code == U'a'; };
  EXPECT_EQ(replace_characters("b\377a\u00f6", "?", is_a), "b??\u00f6");
}

}  // namespace
}  // namespace fovea::cli
