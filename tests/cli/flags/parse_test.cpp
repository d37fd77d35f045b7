#include "flags/parse.h"

#include <gtest/gtest.h>

#include "cli/expect_usage_error.h"

namespace fovea::cli {
namespace {

using test::expect_usage_error;

TEST(Parse, SplitCommasTrimsAndKeepsEmptyParts) {
  EXPECT_EQ(split_commas("a, b,,c "), (std::vector<std::string>{"a", "b", "", "c"}));
  EXPECT_EQ(split_commas(""), (std::vector<std::string>{""}));
}

TEST(Parse, WholeNumbersFromTheMinimumOn) {
  EXPECT_EQ(parse_whole(" 12 ", 1, "--x"), 12);
  for (const char* text : {"", "0", "-3", "1.5", "12abc", "99999999999999999999"}) {
    expect_usage_error("--x: expected a whole number >= 1",
                       [&] { (void)parse_whole(text, 1, "--x"); });
  }
}

TEST(Parse, WholeNumbersUpToTheMaximum) {
  EXPECT_EQ(parse_whole("99", 1, "--x", 99), 99);
  for (const char* text : {"100", "9223372036854775807", "9223372036854775808"}) {
    expect_usage_error("--x: expected a whole number from 1 to 99, got \"" + std::string(text),
                       [&] { (void)parse_whole(text, 1, "--x", 99); });
  }
}

TEST(Parse, IntsAreNotCut) {
  EXPECT_EQ(to_int(2'147'483'647, "--x"), 2'147'483'647);
  expect_usage_error("--x: 2147483648 is too large", [] { (void)to_int(2'147'483'648, "--x"); });
}

TEST(Parse, NumbersAreFiniteAndNothingElse) {
  EXPECT_DOUBLE_EQ(parse_number(" 0.5", "--x"), 0.5);
  EXPECT_DOUBLE_EQ(parse_number("-2e3", "--x"), -2000);
  for (const char* text : {"", "a", "1x", "nan", "inf", "1e999"}) {
    expect_usage_error("--x: expected a number", [&] { (void)parse_number(text, "--x"); });
  }
}

TEST(Parse, PercentsLieBetween0And100) {
  EXPECT_EQ(parse_percents("0,99.9,100", "--x"), (std::vector<double>{0, 99.9, 100}));
  for (const char* text : {"", "50,", "101", "-1", "p99"}) {
    expect_usage_error("--x: expected", [&] { (void)parse_percents(text, "--x"); });
  }
}

TEST(Parse, PositiveListNamesTheBadPart) {
  EXPECT_EQ(parse_positive_list("64,128", "--x"), (std::vector<std::int64_t>{64, 128}));
  expect_usage_error("got \"big\"", [] { (void)parse_positive_list("64,big", "--x"); });
  expect_usage_error("from 1 to 64, got \"65\"",
                     [] { (void)parse_positive_list("64,65", "--x", 64); });
}

}  // namespace
}  // namespace fovea::cli
