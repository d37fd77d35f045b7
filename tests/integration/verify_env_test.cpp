// fovea verify and fovea env.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

#include "integration/run_program.h"
#include "support/golden.h"
#include "support/json.h"
#include "support/temporary_directory.h"

namespace fovea::test {
namespace {

using ::testing::HasSubstr;

TEST(VerifyProgram, PassesOnTheGoldenCheckpoints) {
  for (const std::string& model : golden_folders("qwen3_vl", "golden.safetensors")) {
    const ProgramResult result =
        run_fovea({"verify", model, "--golden", model, "--max-num-batched-tokens", "512"});
    expect_success(result);
    EXPECT_THAT(result.out, HasSubstr("replay equals eager"));
    EXPECT_THAT(result.out, HasSubstr("photo_180x180"));
    EXPECT_THAT(result.out, ::testing::Not(HasSubstr("FAILED")));
    EXPECT_THAT(result.out, ::testing::Not(HasSubstr(" 1 items")));
  }
}

/// A copy of the checkpoint whose processor scales pixels differently, so that its rows differ.
void copy_with_other_mean(const std::string& model, const std::string& folder) {
  std::filesystem::copy(model, folder, std::filesystem::copy_options::recursive);
  Json processor = Json::parse(read_text(folder + "/preprocessor_config.json"));
  processor["image_mean"] = {0.4, 0.5, 0.6};
  write_text(folder + "/preprocessor_config.json", processor.dump());
}

TEST(VerifyProgram, FailsWhenRowsDifferFromTheReference) {
  const TemporaryDirectory folder;
  const std::string model = golden_folder("qwen3_vl", "golden.safetensors");
  copy_with_other_mean(model, folder / "model");
  const ProgramResult result =
      run_fovea({"verify", folder / "model", "--golden", model, "--max-num-batched-tokens", "512"});
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.out, HasSubstr("FAILED"));
  EXPECT_THAT(result.out, HasSubstr("replay equals eager"));
  EXPECT_THAT(result.out, ::testing::Not(HasSubstr("video")))
      << "videos have the mean of before, and are refused";
  EXPECT_THAT(result.err, ::testing::StartsWith("fovea: error: failed checks: "));
}

TEST(VerifyProgram, FailsWhenRowsAreNotFinite) {
  const TemporaryDirectory folder;
  const std::string model = folder / "model";
  std::filesystem::copy(golden_folder("qwen3_vl", "golden.safetensors"), model);
  std::string weights = read_text(model + "/model.safetensors");
  std::fill(weights.end() - 4096, weights.end(), '\xff');  // bf16 NaN
  write_text(model + "/model.safetensors", weights);
  const ProgramResult result = run_fovea({"verify", model, "--max-num-batched-tokens", "512"});
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.err, ::testing::StartsWith("fovea: error: failed checks: rows are finite"));
}

TEST(VerifyProgram, MissingReferenceFails) {
  const TemporaryDirectory folder;
  const std::string model = golden_folder("qwen3_vl", "golden.safetensors");
  expect_failure(run_fovea({"verify", model, "--golden", folder.path()}), 1,
                 folder.path() + ": expected a directory with golden.safetensors and images/");
}

TEST(VerifyProgram, PrintsJsonOnRequest) {
  const std::string model = golden_folder("qwen3_vl", "golden.safetensors");
  const ProgramResult result =
      run_fovea({"verify", model, "--json", "--max-num-batched-tokens", "512"});
  expect_success(result);
  const Json checks = Json::parse(result.out);
  ASSERT_FALSE(checks.empty());
  for (const Json& check : checks) {
    EXPECT_TRUE(check["passed"].get<bool>()) << check["name"] << check["detail"];
    EXPECT_FALSE(check["skipped"].get<bool>()) << check["name"] << check["detail"];
  }
}

TEST(EnvProgram, WorksOnAnyMachine) {
  const ProgramResult result = run_fovea({"env"});
  expect_success(result);
  EXPECT_THAT(result.out, HasSubstr("fovea"));
  EXPECT_THAT(result.out, HasSubstr("processor"));
  EXPECT_THAT(result.out, HasSubstr("cuda"));
  EXPECT_THAT(result.out, HasSubstr("fovea-decoder)"));
}

TEST(EnvProgram, PrintsJsonOnRequest) {
  const ProgramResult result = run_fovea({"env", "--json"});
  expect_success(result);
  EXPECT_TRUE(Json::parse(result.out).contains("fovea"));
}

}  // namespace
}  // namespace fovea::test
