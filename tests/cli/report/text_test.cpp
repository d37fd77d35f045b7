#include "report/text.h"

#include <gtest/gtest.h>

#include "cli/expect_usage_error.h"

namespace fovea::cli {
namespace {

using test::expect_usage_error;

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
  EXPECT_EQ(join({}, "x"), "");
}

TEST(Text, OneLineRemovesBreaksAndControlCharacters) {
  EXPECT_EQ(one_line("first\n\tsecond\r\nthird\n"), "first second third");
  EXPECT_EQ(one_line("bell\x07"), "bell?");
  EXPECT_EQ(one_line("Größe"), "Größe");
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

TEST(Text, SplitCommasTrimsAndKeepsEmptyParts) {
  EXPECT_EQ(split_commas("a, b,,c "), (std::vector<std::string>{"a", "b", "", "c"}));
  EXPECT_EQ(split_commas(""), (std::vector<std::string>{""}));
}

TEST(Text, WholeNumbersFromTheMinimumOn) {
  EXPECT_EQ(parse_whole(" 12 ", 1, "--x"), 12);
  for (const char* text : {"", "0", "-3", "1.5", "12abc", "99999999999999999999"}) {
    expect_usage_error("--x: expected a whole number >= 1",
                       [&] { (void)parse_whole(text, 1, "--x"); });
  }
}

TEST(Text, IntsAreNotCut) {
  EXPECT_EQ(to_int(2'147'483'647, "--x"), 2'147'483'647);
  expect_usage_error("--x: 2147483648 is too large", [] { (void)to_int(2'147'483'648, "--x"); });
}

TEST(Text, NumbersAreFiniteAndNothingElse) {
  EXPECT_DOUBLE_EQ(parse_number(" 0.5", "--x"), 0.5);
  EXPECT_DOUBLE_EQ(parse_number("-2e3", "--x"), -2000);
  for (const char* text : {"", "a", "1x", "nan", "inf", "1e999"}) {
    expect_usage_error("--x: expected a number", [&] { (void)parse_number(text, "--x"); });
  }
}

TEST(Text, PercentsLieBetween0And100) {
  EXPECT_EQ(parse_percents("0,99.9,100", "--x"), (std::vector<double>{0, 99.9, 100}));
  for (const char* text : {"", "50,", "101", "-1", "p99"}) {
    expect_usage_error("--x: expected", [&] { (void)parse_percents(text, "--x"); });
  }
}

TEST(Text, PositiveListNamesTheBadPart) {
  EXPECT_EQ(parse_positive_list("64,128", "--x"), (std::vector<std::int64_t>{64, 128}));
  expect_usage_error("got \"big\"", [] { (void)parse_positive_list("64,big", "--x"); });
}

}  // namespace
}  // namespace fovea::cli
