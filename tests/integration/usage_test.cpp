// Wrong usage: exit code 2, nothing on stdout, one line that helps.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <tuple>

#include "integration/run_program.h"
#include "support/golden.h"

namespace fovea::test {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

struct UsageCase {
  const char* name;
  std::vector<std::string> arguments;
  const char* part;  ///< of the complaint
};

void PrintTo(const UsageCase& usage, std::ostream* stream) {  // NOLINT: GoogleTest looks for it
  *stream << usage.name;
}

class Usage : public ::testing::TestWithParam<UsageCase> {};

TEST_P(Usage, IsRefusedWithOneLine) {
  expect_failure(run_fovea(GetParam().arguments), 2, GetParam().part);
}

INSTANTIATE_TEST_SUITE_P(
    Mistakes, Usage,
    ::testing::Values(
        UsageCase{"NoVerb", {}, "expected a verb"},
        UsageCase{"UnknownVerb", {"encoed"}, "unknown verb \"encoed\"; did you mean encode?"},
        UsageCase{"UnknownFlagOfTheProgram", {"--verbose"}, "unknown flag --verbose"},
        UsageCase{"NoBenchmark", {"bench"}, "expected a verb: one of cache, capture, latency"},
        UsageCase{"UnknownBenchmark", {"bench", "latncy"}, "did you mean latency?"},
        UsageCase{"NoModel", {"encode"}, "MODEL is required"},
        UsageCase{"NoOutput", {"encode", "m", "a.png"}, "--output is required"},
        UsageCase{"NoInput",
                  {"encode", "m", "-o", "x"},
                  "expected at least one INPUT, --video or --pixel-values"},
        UsageCase{"NoSizes", {"plan", "m"}, "--sizes is required"},
        UsageCase{"MisspeltFlag",
                  {"encode", "m", "a.png", "--ouput", "x"},
                  "unknown flag --ouput; did you mean --output?"},
        UsageCase{"MisspeltFlagWithValue",
                  {"encode", "m", "a.png", "-o", "x", "--dtpye=float16"},
                  "unknown flag --dtpye; did you mean --dtype?"},
        UsageCase{"MissingValue", {"encode", "m", "a.png", "-o"}, "--output"},
        UsageCase{"EmptyOutput",
                  {"encode", "m", "a.png", "-o", ""},
                  "--output: expected the name of a file, got \"\""},
        UsageCase{"EmptyFolderOfAModel",
                  {"pull", "maker/model", "-o", ""},
                  "--output: expected the name of a folder, got \"\""},
        UsageCase{"EmptyReferenceOfEncode",
                  {"encode", "m", "a.png", "-o", "x", "--golden", ""},
                  "--golden: expected the name of a folder, got \"\""},
        UsageCase{"EmptyReferenceOfVerify",
                  {"verify", "m", "--golden", ""},
                  "--golden: expected the name of a folder, got \"\""},
        UsageCase{"OutputToStdout",
                  {"encode", "m", "a.png", "-o", "-"},
                  "--output: results are not written to stdout; ./- is a file of that name"},
        UsageCase{"InputFromStdin",
                  {"encode", "m", "-o", "x", "--", "-"},
                  "INPUT: stdin is not read, expected a path"},
        UsageCase{"ExtraArgument", {"plan", "m", "--sizes", "8x8", "more"}, "\"more\""},
        UsageCase{"UnknownDtype",
                  {"encode", "m", "a.png", "-o", "x", "--dtype", "float64"},
                  "--dtype: expected float32, bfloat16, float16, got \"float64\""},
        UsageCase{"UnknownDevice",
                  {"encode", "m", "a.png", "-o", "x", "--device", "cuda:x"},
                  "--device: expected auto, cpu, cuda or cuda:<index>, got \"cuda:x\""},
        UsageCase{"UnknownDeviceInAList",
                  {"encode", "m", "a.png", "-o", "x", "--device", "cuda:0,tpu"},
                  "--device: expected auto, cpu, cuda or cuda:<index>, got \"cuda:0,tpu\""},
        UsageCase{"NoReplicas",
                  {"encode", "m", "a.png", "-o", "x", "--data-parallel-size", "0"},
                  "--data-parallel-size: expected a whole number >= 1, got \"0\""},
        UsageCase{"BadBudgets",
                  {"encode", "m", "a.png", "-o", "x", "--token-budgets", "64,0"},
                  "--token-budgets: expected a whole number from 1 to 16777216, got \"0\""},
        UsageCase{"HugeBudget",
                  {"encode", "m", "a.png", "-o", "x", "--token-budgets", "9223372036854775807"},
                  "--token-budgets: expected a whole number from 1 to 16777216, got"},
        UsageCase{"NegativeItems",
                  {"encode", "m", "a.png", "-o", "x", "--max-items-per-batch", "-1"},
                  "--max-items-per-batch: expected a whole number from 0 to 16777216"},
        UsageCase{"BadFrames",
                  {"encode", "m", "a.png", "-o", "x", "--max-frames-per-batch", "-1"},
                  "--max-frames-per-batch: expected a whole number from 0 to 16777216"},
        UsageCase{"BadSeed", {"inspect", "m", "--seed", "-5"}, "--seed: expected"},
        UsageCase{"BadFps",
                  {"encode", "m", "--video", "v", "-o", "x", "--fps", "0"},
                  "--fps: expected a number above 0, got \"0\""},
        UsageCase{"BadThreads", {"verify", "m", "--threads", "two"}, "--threads: expected"},
        UsageCase{"BadThreadList",
                  {"bench", "latency", "m", "--threads", "1,,2"},
                  "--threads: expected a whole number from 1 to 1024, got \"\""},
        UsageCase{"BadSize", {"plan", "m", "--sizes", "640"}, "expected WIDTHxHEIGHT"},
        UsageCase{"BadImageSize", {"inspect", "m", "--image", "1x2x3"}, "expected WIDTHxHEIGHT"},
        UsageCase{"BadCompilationConfig",
                  {"inspect", "m", "--compilation-config", "[]"},
                  "--compilation-config: expected a JSON object, got []"},
        UsageCase{"EmptyCompilationConfig",
                  {"inspect", "m", "--compilation-config", ""},
                  "--compilation-config: expected a JSON object, got"},
        UsageCase{"DeviceOfNoMachine",
                  {"encode", "m", "a.png", "-o", "x", "--device", "cuda:99999999999"},
                  "--device: expected auto, cpu, cuda or cuda:<index>, got \"cuda:99999999999\""},
        UsageCase{"DevicesOfTwoKinds",
                  {"encode", "m", "a.png", "-o", "x", "--device", "cpu,cuda"},
                  "--device: expected all cpu or all cuda, got \"cpu,cuda\""},
        UsageCase{"DevicesOfAutoAndCpu",
                  {"encode", "m", "a.png", "-o", "x", "--device", "auto,cpu"},
                  "--device: expected all cpu or all cuda, got \"auto,cpu\""},
        UsageCase{"TooManyThreads",
                  {"encode", "m", "a.png", "-o", "x", "--threads", "10000"},
                  "--threads: expected a whole number from 1 to 1024, got \"10000\""},
        UsageCase{"TooManyTokens",
                  {"inspect", "m", "--max-num-batched-tokens", "281474976710656"},
                  "--max-num-batched-tokens: expected a whole number from 1 to 16777216"},
        UsageCase{"TooManyRuns",
                  {"bench", "throughput", "m", "a.png", "--repeat", "9223372036854775807"},
                  "--repeat: expected a whole number from 1 to 1000000"},
        UsageCase{"TooManyPatches",
                  {"bench", "latency", "m", "--patches", "9223372036854775807"},
                  "--patches: expected a whole number from 1 to 1000000"},
        UsageCase{"TooManyPatchesOfACase",
                  {"bench", "latency", "m", "--cases", "1x9223372036854775807"},
                  "--cases: expected a whole number from 1 to 1000000"},
        UsageCase{"UnknownFlagBeforeMissingInput",
                  {"bench", "throughput", "m", "--repaet", "3"},
                  "unknown flag --repaet; did you mean --repeat?"},
        UsageCase{"BadLogLevel", {"env", "--log-level", "loud"}, "--log-level: "}),
    [](const auto& test) { return std::string(test.param.name); });

TEST(UsageOfModels, NamesTheFlagThatTheModelCannotWorkWith) {
  const std::string qwen = golden_folder("qwen3_vl", "config.json");
  const std::string deepseek = golden_folder("deepseek_ocr", "config.json");
  const std::tuple<std::string, const char*, const char*, const char*> cases[] = {
      {qwen, "--max-pixels", "1", "got 4096 (the checkpoint's) and 1"},
      {qwen, "--min-pixels", "99999999", "got 99999999 and 16777216 (the checkpoint's)"},
      {qwen, "--data-parallel-size", "100", "number of replicas must be in [0, 64], got 100"},
      {qwen, "--max-items-per-batch", "9999999", "the model's largest budget (8192)"},
      {deepseek, "--token-budgets", "64", "expected a token budget of at least 272"}};
  for (const auto& [model, flag, value, part] : cases) {
    const ProgramResult result = run_fovea({"encode", model, "a.png", "-o", "rows", flag, value});
    expect_failure(result, 2, part);
    EXPECT_THAT(result.err, ::testing::StartsWith("fovea: error: " + std::string(flag)));
  }
}

TEST(Messages, QuietWinsOverLogLevel) {
  const std::string model = golden_folder("qwen3_vl", "config.json");
  const std::vector<std::string> plan{"plan", model, "--sizes", "8x8"};
  for (const std::vector<std::string>& flags : {std::vector<std::string>{"--log-level", "info"},
                                                {"--quiet", "--log-level", "info"},
                                                {"--log-level", "info", "--quiet"}}) {
    std::vector<std::string> arguments = plan;
    arguments.insert(arguments.end(), flags.begin(), flags.end());
    EXPECT_EQ(run_fovea(arguments).err.empty(), flags.size() > 2);
  }
}

TEST(LongHelp, SaysEachDefaultOnce) {
  const ProgramResult help = run_fovea({"encode", "--help-all"});
  EXPECT_EQ(help.exit_code, 0);
  EXPECT_THAT(help.out, HasSubstr("--team-patches N"));
  EXPECT_THAT(help.out, Not(::testing::ContainsRegex("\\(default: [^)]*\\) *\n? *\\(default:")));
}

TEST(UsageHint, NamesTheHelpOfTheVerb) {
  EXPECT_THAT(run_fovea({"encode"}).err, HasSubstr("(see fovea encode --help)"));
  EXPECT_THAT(run_fovea({"bench", "latency"}).err, HasSubstr("(see fovea bench latency --help)"));
}

TEST(Help, ExplainsEveryVerbWithAnExample) {
  const std::vector<std::vector<std::string>> verbs{{},
                                                    {"encode"},
                                                    {"plan"},
                                                    {"inspect"},
                                                    {"verify"},
                                                    {"env"},
                                                    {"bench"},
                                                    {"bench", "capture"},
                                                    {"bench", "latency"},
                                                    {"bench", "mm-processor"},
                                                    {"bench", "throughput"}};
  for (std::vector<std::string> arguments : verbs) {
    std::string call = "fovea";
    for (const std::string& verb : arguments) call += " " + verb;
    arguments.emplace_back("--help");
    const ProgramResult result = run_fovea(arguments);
    expect_success(result);
    EXPECT_THAT(result.out, HasSubstr("Usage: " + call + " "));
    EXPECT_THAT(result.out, HasSubstr("Example"));
    EXPECT_THAT(result.out, HasSubstr("\n  " + call + " "));
    EXPECT_THAT(result.out, Not(HasSubstr("  Of "))) << "a flag that does not say what it is";
  }
}

TEST(Help, ShowsDefaults) {
  const std::string help = run_fovea({"encode", "-h"}).out;
  EXPECT_THAT(help, HasSubstr("(default: float32)"));
  EXPECT_THAT(help, HasSubstr("(default: auto)"));
  EXPECT_THAT(help, HasSubstr("(default: vllm)"));
  EXPECT_THAT(help, HasSubstr("(required)"));
}

TEST(Stdout, ThatCannotBeWrittenIsAFailure) {
  for (const char* arguments : {"--help", "--version", "encode --help", "version"}) {
    const std::string command =
        std::string(FOVEA_TEST_PROGRAM) + " " + arguments + " >/dev/full 2>/dev/null";
    EXPECT_EQ(WEXITSTATUS(std::system(command.c_str())), 1) << arguments;
  }
}

TEST(UsageOfDevices, SixtyFiveDevicesAreTooMany) {
  std::string devices = "cuda:0";
  for (int i = 1; i < 65; ++i) devices += ",cuda:" + std::to_string(i);
  expect_failure(run_fovea({"encode", "m", "a.png", "-o", "x", "--device", devices}), 2,
                 "--device: expected at most 64 devices");
}

TEST(Version, VerbAndFlagAgree) {
  const ProgramResult verb = run_fovea({"version"});
  const ProgramResult flag = run_fovea({"--version"});
  expect_success(verb);
  expect_success(flag);
  EXPECT_EQ(verb.out, flag.out);
  EXPECT_THAT(verb.out, ::testing::MatchesRegex("fovea [0-9]+\\.[0-9]+\\.[0-9]+\n"));
}

}  // namespace
}  // namespace fovea::test
