#include "flags/cli11.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/expect_usage_error.h"

namespace fovea::cli {
namespace {

using test::expect_usage_error;
using ::testing::HasSubstr;

class Flags : public ::testing::Test {
 protected:
  void parse(const std::string& line) { app_.parse(line); }

  /// Expects that the parser refuses `line` with a message that contains `part`.
  void expect_refused(const std::string& line, const std::string& part) {
    try {
      parse(line);
    } catch (const CLI::ParseError& error) {
      EXPECT_THAT(error.what(), HasSubstr(part));
      return;
    }
    ADD_FAILURE() << line << ": expected a complaint with \"" << part << '"';
  }

  CLI::App app_;
  std::string text_;
  std::int64_t number_ = 0;
  std::optional<std::int64_t> count_;
  std::vector<std::int64_t> list_;
};

TEST_F(Flags, AChoiceIsOneOfItsNames) {
  text_ = "cost";
  const CLI::Option* flag = add_choice(app_, "--packing", text_, {"greedy", "cost"}, "How");
  EXPECT_EQ(flag->get_type_name(), "greedy|cost");
  EXPECT_EQ(flag->get_default_str(), "cost");
  parse("--packing greedy");
  EXPECT_EQ(text_, "greedy");
  expect_refused("--packing best", "--packing: expected greedy, cost, got \"best\"");
}

TEST_F(Flags, APositiveNumberShowsItsDefaultUnlessZero) {
  EXPECT_EQ(add_positive(app_, "--inferred", number_, "N")->get_default_str(), "");
  std::int64_t three = 3;
  EXPECT_EQ(add_positive(app_, "--three", three, "N")->get_default_str(), "3");
  parse("--three 7");
  EXPECT_EQ(three, 7);
  expect_usage_error("--three: expected a whole number >= 1", [&] { parse("--three 0"); });
}

TEST_F(Flags, ACountMayBeZeroAndIsAbsentUntilGiven) {
  add_count(app_, "--count", count_, "N");
  parse("");
  EXPECT_EQ(count_, std::nullopt);
  parse("--count 0");
  EXPECT_EQ(count_, 0);
  expect_usage_error("--count: expected a whole number >= 0", [&] { parse("--count -1"); });
}

TEST_F(Flags, AListHasCommasAndNumbersAboveZero) {
  list_ = {1, 2};
  EXPECT_EQ(add_positive_list(app_, "--list", list_, "N", 100)->get_default_str(), "1,2");
  parse("--list 8,64");
  EXPECT_EQ(list_, (std::vector<std::int64_t>{8, 64}));
  for (const char* line : {"--list 8,0", "--list 8,101"}) {
    expect_usage_error("--list: expected a whole number from 1 to 100", [&] { parse(line); });
  }
}

TEST_F(Flags, NumbersMayHaveALimit) {
  add_positive(app_, "--runs", number_, "N", 9);
  add_count(app_, "--count", count_, "N", 9);
  expect_usage_error("--runs: expected a whole number from 1 to 9", [&] { parse("--runs 10"); });
  expect_usage_error("--count: expected a whole number from 0 to 9", [&] { parse("--count 10"); });
}

TEST_F(Flags, JsonIsNotEmpty) {
  add_json(app_, "--config", text_, "Settings");
  app_.parse(std::vector<std::string>{"{}", "--config"});
  EXPECT_EQ(text_, "{}");
  EXPECT_THROW(app_.parse(std::vector<std::string>{"", "--config"}), CLI::ParseError);
}

TEST_F(Flags, ACheckShowsNothingInHelp) {
  CLI::Option* flag = app_.add_option("--x", text_)->type_name("X");
  flag->check(check([](const std::string&) { return std::string("never"); }));
  EXPECT_EQ(flag->get_type_name(), "X");
  expect_refused("--x 1", "never");
}

}  // namespace
}  // namespace fovea::cli
