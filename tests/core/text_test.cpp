#include "fovea/text.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include "support/expect_error.h"
#include "support/temporary_directory.h"

namespace fovea {
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

TEST(Printable, KeepsWhatMovesNothing) {
  EXPECT_EQ(printable("path=/gr\u00f6\u00dfe \u20ac \U0001f600"),
            "path=/gr\u00f6\u00dfe \u20ac \U0001f600");
  EXPECT_EQ(printable(""), "");
}

TEST(Printable, ReplacesWhatMovesTheTextOfATerminal) {
  EXPECT_EQ(printable("a\nb\tc\x1b[31m\x7f"), "a?b?c?[31m?") << "C0 and DEL";
  EXPECT_EQ(printable("\u0080\u009b2J\u009f"), "??2J?") << "C1";
  EXPECT_EQ(printable("x\u202egpj\u2066\u2069\u200f\u061c"), "x?gpj????") << "directions";
  EXPECT_EQ(printable("x\u2028y\u2029"), "x?y?") << "line breaks";
  EXPECT_EQ(printable("\xff\xc3 \xed\xa0\x80"), "?? ???") << "no UTF-8";
}

TEST(Printable, IsBounded) {
  EXPECT_EQ(printable(std::string(100'000, 'a')).size(), kMaxMessageBytes);
  EXPECT_EQ(printable("0123456789", 7), "01...89");
}

TEST(Printable, IsItsOwn) {
  const std::string text = printable("a\x1b\u202e\xff" + std::string(10'000, 'b'));
  EXPECT_EQ(printable(text), text);
}

TEST(ReadTextFile, GivesTheText) {
  const test::TemporaryDirectory folder;
  test::write_text(folder / "file", "key\n");
  EXPECT_EQ(read_text_file(folder / "file", 4), "key\n");
}

TEST(ReadTextFile, RefusesWhatIsLarger) {
  const test::TemporaryDirectory folder;
  test::write_text(folder / "file", "12345");
  test::expect_error(ErrorCode::kInvalidArgument, "file has 5 bytes, at most 4 are read",
                     [&] { (void)read_text_file(folder / "file", 4); });
}

TEST(ReadTextFile, WaitsForNothing) {
  const test::TemporaryDirectory folder;
  ASSERT_EQ(mkfifo((folder / "pipe").c_str(), 0600), 0);
  for (const std::string& path : {folder / "pipe", std::string("/dev/zero"), folder.path()}) {
    test::expect_error(ErrorCode::kIo, path + ": not a regular file",
                       [&] { (void)read_text_file(path, 4); });
  }
  test::expect_error(ErrorCode::kNotFound, "absent: no such file",
                     [&] { (void)read_text_file(folder / "absent", 4); });
}

}  // namespace
}  // namespace fovea
