#include "report/text.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "support/grouped_locale.h"

namespace fovea::cli {
namespace {

TEST(Text, FixedRoundsToDecimals) {
  EXPECT_EQ(fixed(3.14159, 2), "3.14");
  EXPECT_EQ(fixed(0.5, 0), "0");  // to even, as printf does
  EXPECT_EQ(fixed(-1.25, 1), "-1.2");
}

TEST(Text, PercentHasOneDecimal) { EXPECT_EQ(percent(0.9849), "98.5 %"); }

TEST(Text, BytesUseTheLargestUnitBelow) {
  EXPECT_EQ(bytes_text(0), "0 B");
  EXPECT_EQ(bytes_text(1023), "1023 B");
  EXPECT_EQ(bytes_text(1536), "1.5 KiB");
  EXPECT_EQ(bytes_text(std::size_t{3} << 30), "3.0 GiB");
}

TEST(Text, JoinPutsSeparatorsBetween) {
  const std::vector<std::int64_t> values{1, 22, 18};
  EXPECT_EQ(join(values, "x"), "1x22x18");
  EXPECT_EQ(join(std::span(values).first(1), "x"), "1");
  EXPECT_EQ(join(std::span(values).first(0), "x"), "");
}

TEST(Text, JoinTakesNamesAsWell) {
  EXPECT_EQ(join(std::vector<std::string>{"encode", "plan"}, ", "), "encode, plan");
}

TEST(Text, TrimmedKeepsInnerSpace) {
  EXPECT_EQ(trimmed(" \ta b\r\n"), "a b");
  EXPECT_EQ(trimmed(" \n"), "");
}

TEST(Text, OneLineRemovesBreaksAndControlCharacters) {
  EXPECT_EQ(one_line("first\n\tsecond\r\nthird\n"), "first second third");
  EXPECT_EQ(one_line("bell\x07"), "bell?");
  EXPECT_EQ(one_line("Größe"), "Größe");
}

TEST(Text, OneLineRemovesWhatMovesTheTextOfATerminal) {
  EXPECT_EQ(one_line("\u009b2J"), "?2J") << "a control sequence in one character";
  EXPECT_EQ(one_line("photo\u202egpj.exe"), "photo?gpj.exe");
  EXPECT_EQ(one_line("a\u2028b\u2066c\u061cd"), "a?b?c?d");
  EXPECT_EQ(one_line("\x9b"
                     "2J"),
            "?2J")
      << "the same as a byte that is not UTF-8";
}

TEST(Text, WhatIsNotFiniteIsNoNumber) {
  EXPECT_EQ(fixed(std::numeric_limits<double>::infinity(), 1), "-");
  EXPECT_EQ(fixed(std::nan(""), 1), "-");
  EXPECT_EQ(fixed(1e300, 0).size(), 301u);
}

TEST(Text, NumbersAreAlikeInEveryLocale) {
  const fovea::test::GroupedLocale locale;
  EXPECT_EQ(fixed(1234567.25, 1), "1234567.2");
  EXPECT_EQ(bytes_text(1'500'000'000), "1.4 GiB");
}

TEST(Text, ShortenPathKeepsTheEnd) {
  EXPECT_EQ(shorten_path("short.png", 20), "short.png");
  EXPECT_EQ(shorten_path("a/long/folder/photo.png", 12), "...photo.png");
}

TEST(Text, ShortenPathCutsBetweenCharacters) {
  // The cut would fall into the two bytes of the first letter.
  EXPECT_EQ(shorten_path("xxxxäbc", 6), "...bc");
}

TEST(Text, NearestNameFindsMisspellings) {
  const std::vector<std::string> names{"encode", "plan", "inspect", "bench"};
  EXPECT_EQ(nearest_name("encdoe", names), "encode");
  EXPECT_EQ(nearest_name("INSPECT", names), "inspect");
  EXPECT_EQ(nearest_name("plam", names), "plan");
}

TEST(Text, NearestNameCompletesBeginnings) {
  EXPECT_EQ(nearest_name("enc", std::vector<std::string>{"bench", "encode"}), "encode");
}

TEST(Text, NearestNameIsAbsentForStrangers) {
  EXPECT_EQ(nearest_name("zzz", std::vector<std::string>{"encode", "plan"}), std::nullopt);
  EXPECT_EQ(nearest_name("encode", {}), std::nullopt);
}

}  // namespace
}  // namespace fovea::cli
