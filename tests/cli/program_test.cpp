#include "program.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include "errors.h"

namespace fovea::cli {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

struct Result {
  int code = -1;
  std::string out;
  std::string err;
};

Result run(std::vector<std::string> arguments) {
  ::testing::internal::CaptureStdout();
  ::testing::internal::CaptureStderr();
  Result result;
  result.code = run_program(std::move(arguments));
  result.err = ::testing::internal::GetCapturedStderr();
  result.out = ::testing::internal::GetCapturedStdout();
  return result;
}

TEST(Program, ResultsGoToStdout) {
  const Result result = run({"version"});
  EXPECT_EQ(result.code, 0);
  EXPECT_THAT(result.out, StartsWith("fovea "));
  EXPECT_EQ(result.err, "");
}

TEST(Program, HelpIsAResult) {
  const Result result = run({"plan", "--help"});
  EXPECT_EQ(result.code, 0);
  EXPECT_THAT(result.out, HasSubstr("Usage: fovea plan MODEL --sizes"));
}

TEST(Program, TheLongHelpHasTheFlagsThatAreSeldomChanged) {
  EXPECT_THAT(run({"plan", "--help"}).out, Not(HasSubstr("--max-item-bytes")));
  const Result all = run({"plan", "--help-all"});
  EXPECT_EQ(all.code, 0);
  EXPECT_THAT(all.out, HasSubstr("--max-item-bytes"));
  EXPECT_THAT(all.out, HasSubstr("--max-image-pixels")) << "those of the short one, too";
}

TEST(Program, WrongUsageNamesTheHelpOfTheVerb) {
  const Result result = run({"bench", "latency"});
  EXPECT_EQ(result.code, 2);
  EXPECT_EQ(result.out, "");
  EXPECT_EQ(result.err, "fovea: error: MODEL is required (see fovea bench latency --help)\n");
}

TEST(Program, AnUnknownWordExplainsMoreThanWhatIsMissing) {
  EXPECT_THAT(run({"plan", "--size", "8x8"}).err,
              StartsWith("fovea: error: unknown flag --size; did you mean --sizes?"));
  EXPECT_THAT(run({"plan", "m", "--sizes", "8x8", "more"}).err,
              StartsWith("fovea: error: unexpected argument \"more\""));
}

TEST(Program, AFlagOfVllmWhoseKeysAreFlagsNamesThem) {
  for (const std::vector<std::string>& flag :
       {std::vector<std::string>{"--mm-processor-kwargs", R"({"max_pixels": 9})"},
        std::vector<std::string>{R"(--mm_processor_kwargs={"max_pixels": 9})"}}) {
    std::vector<std::string> arguments{"inspect", "m"};
    arguments.insert(arguments.end(), flag.begin(), flag.end());
    EXPECT_THAT(run(arguments).err,
                StartsWith("fovea: error: unknown flag --mm-processor-kwargs; --min-pixels and "
                           "--max-pixels are for all items"));
  }
}

TEST(Program, AFlagGivenAgainIsNamedWithHowOften) {
  std::vector<std::string> arguments{"encode",  "m",       "a.png",   "-o",      "rows",
                                     "--dtype", "float16", "--dtype", "bfloat16"};
  EXPECT_THAT(run(arguments).err, StartsWith("fovea: error: --dtype: given twice, expected once"));
  arguments.insert(arguments.end(), {"--dtype", "float32"});
  EXPECT_THAT(run(arguments).err,
              StartsWith("fovea: error: --dtype: given 3 times, expected once"));
}

TEST(Program, FailuresAtRunTimeHaveAnotherCode) {
  const Result result = run({"plan", "/nonexistent", "--sizes", "8x8"});
  EXPECT_EQ(result.code, 1);
  EXPECT_THAT(result.err, StartsWith("fovea: error: /nonexistent"));
  EXPECT_EQ(result.err.find('\n'), result.err.size() - 1);
}

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
