#include "verb.h"

#include <gtest/gtest.h>

#include "errors.h"

namespace fovea::cli {
namespace {

struct EchoFlags {
  std::int64_t number = 0;
};

void add_flags(CLI::App& verb, EchoFlags& flags) { verb.add_option("--number", flags.number); }

int run_echo(const EchoFlags& flags, Console& console) {
  console.write(LogLevel::kInfo, "number " + std::to_string(flags.number));
  return flags.number == 0 ? kExitOk : kExitFailure;
}

constexpr VerbText kText{.name = "echo", .summary = "Say it", .footer = "Example:\n  echo"};

class Verb : public ::testing::Test {
 protected:
  Verb() { add_verb(app_, program_, kText, add_flags, run_echo); }

  /// What the verb writes to stderr; its exit code is in `code_`.
  std::string run(const std::string& line) {
    ::testing::internal::CaptureStderr();
    app_.parse(line);
    code_ = program_.action();
    return ::testing::internal::GetCapturedStderr();
  }

  Program program_;
  CLI::App app_;
  int code_ = -1;
};

TEST_F(Verb, RunsWithItsFlagsAfterAllWereUnderstood) {
  app_.parse("echo --number 3");
  ASSERT_TRUE(program_.action);
  EXPECT_EQ(program_.action(), kExitFailure);
}

TEST_F(Verb, LogLevelsAreNamed) {
  EXPECT_EQ(run("echo"), "");
  EXPECT_EQ(run("echo --log-level info"), "fovea: info: number 0\n");
  EXPECT_EQ(run("echo --log-level trace"), "fovea: info: number 0\n");
  EXPECT_EQ(run("echo --log-level error"), "");
  EXPECT_EQ(code_, kExitOk);
}

TEST_F(Verb, QuietWinsOverTheLogLevel) {
  EXPECT_EQ(run("echo --quiet --log-level info"), "");
  EXPECT_EQ(run("echo --log-level info -q"), "");
}

}  // namespace
}  // namespace fovea::cli
