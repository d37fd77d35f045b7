#include "vllm/command_line.h"

#include <gtest/gtest.h>

#include "cli/expect_usage_error.h"

namespace fovea::cli {
namespace {

using Words = std::vector<std::string>;

TEST(CommandLine, FlagsAreTakenInBothForms) {
  CommandLine line({"encode", "m", "--a", "1", "--bc=2=3", "x"});
  EXPECT_TRUE(line.has("--bc"));
  EXPECT_FALSE(line.has("--b"));
  EXPECT_EQ(line.take("--a"), "1");
  EXPECT_EQ(line.take("--bc"), "2=3");
  EXPECT_EQ(line.take("--a"), std::nullopt);
  EXPECT_EQ(line.words(), (Words{"encode", "m", "x"}));
}

TEST(CommandLine, WhatStandsBehindTwoDashesIsNoFlag) {
  CommandLine line({"encode", "--a", "1", "--", "--a", "2"});
  EXPECT_EQ(line.take("--a"), "1");
  EXPECT_EQ(line.take("--a"), std::nullopt);
  EXPECT_FALSE(line.take_switch("--a"));
  line.put({"--b", "3"});
  EXPECT_EQ(line.words(), (Words{"encode", "--b", "3", "--", "--a", "2"}));
}

TEST(CommandLine, FlagsHaveOneValue) {
  test::expect_usage_error("--a: expected a value", [] { CommandLine({"--a"}).take("--a"); });
  test::expect_usage_error("--a: expected a value", [] {
    CommandLine({"--a", "--", "x"}).take("--a");
  });
  test::expect_usage_error("--a: given twice, expected once", [] {
    CommandLine({"--a", "1", "--a=2"}).take("--a");
  });
  test::expect_usage_error("--a: given 3 times, expected once", [] {
    CommandLine({"--a=1", "--a=2", "--a=3"}).take("--a");
  });
}

TEST(CommandLine, SwitchesAreTakenHoweverOftenTheyAreGiven) {
  CommandLine line({"encode", "--a", "m", "--a"});
  EXPECT_TRUE(line.take_switch("--a"));
  EXPECT_FALSE(line.take_switch("--a"));
  EXPECT_EQ(line.words(), (Words{"encode", "m"}));
}

TEST(CommandLine, IsWhatItsFirstWordsName) {
  const CommandLine line({"bench", "mm-processor", "m"});
  EXPECT_TRUE(line.is({"bench", "mm-processor"}));
  EXPECT_FALSE(line.is({"serve"}));
  EXPECT_FALSE(CommandLine({"bench"}).is({"bench", "mm-processor"}));
}

}  // namespace
}  // namespace fovea::cli
