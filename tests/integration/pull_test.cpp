// fovea pull, and verbs with the name of a model on the hub.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "hub/fake_hub.h"
#include "integration/run_program.h"
#include "support/golden.h"

namespace fovea::test {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

/// A hub with the golden checkpoint, which the program asks.
class PullProgram : public ::testing::Test {
 protected:
  PullProgram() {
    const std::string model = golden_folder("qwen3_vl", "golden.safetensors");
    for (const char* name : {"config.json", "preprocessor_config.json", "model.safetensors"}) {
      hub_.add(name, read_text(model + "/" + name));
    }
    setenv("HF_ENDPOINT", hub_.url().c_str(), 1);
  }

  [[nodiscard]] std::string snapshot() const {
    return environment_.cache() + "/models--maker--model/snapshots/" + FakeHub::kCommit;
  }

  HubEnvironment environment_;
  FakeHub hub_;
};

TEST_F(PullProgram, PrintsTheDirectory) {
  const ProgramResult result = run_fovea({"pull", "maker/model"});
  expect_success(result);
  EXPECT_EQ(result.out, snapshot() + "\n");
}

TEST_F(PullProgram, FillsAFolder) {
  const TemporaryDirectory folder;
  const ProgramResult result = run_fovea({"pull", "maker/model", "-o", folder / "model"});
  expect_success(result);
  EXPECT_EQ(result.out, (folder / "model") + "\n");
  expect_success(run_fovea({"inspect", folder / "model"}));
}

TEST_F(PullProgram, VerbsTakeTheNameOfWhatIsThere) {
  expect_success(run_fovea({"pull", "maker/model"}));
  expect_success(run_fovea({"plan", "maker/model", "--sizes", "64x64"}));
  expect_failure(run_fovea({"plan", "maker/model", "--revision", "v2", "--sizes", "64x64"}), 2,
                 "\"maker/model\" at revision v2; --download gets it");
}

TEST_F(PullProgram, VerbsDownloadWhereTheyAreTold) {
  expect_failure(run_fovea({"inspect", "maker/model"}), 2,
                 "expected a directory, or a model in the hub cache " + environment_.cache() +
                     ", got \"maker/model\"; --download gets it, or `fovea pull maker/model`");
  const ProgramResult result = run_fovea({"inspect", "maker/model", "--download"});
  expect_success(result);
  EXPECT_TRUE(std::filesystem::exists(snapshot() + "/model.safetensors"));
}

TEST_F(PullProgram, WhatTheCacheHasWillDoWithoutTheHub) {
  expect_success(run_fovea({"pull", "maker/model"}));
  setenv("HF_ENDPOINT", "http://127.0.0.1:9", 1);
  const ProgramResult result = run_fovea({"plan", "maker/model", "--download", "--sizes", "64x64"});
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_THAT(result.err, AllOf(HasSubstr("warning: http://127.0.0.1:9/"),
                                HasSubstr("the hub cache has " + snapshot())));
  expect_failure(run_fovea({"plan", "maker/other", "--download", "--sizes", "64x64"}), 1,
                 "http://127.0.0.1:9/api/models/maker/other/revision/main: ");
}

TEST_F(PullProgram, FlagsOfTheHubNeedAName) {
  const std::string model = golden_folder("qwen3_vl", "golden.safetensors");
  expect_failure(run_fovea({"inspect", model, "--download"}), 2,
                 "--download: expected a name on the hub as MODEL, got the path");
  expect_failure(run_fovea({"inspect", model, "--revision", "v2"}), 2,
                 "--revision: expected a name on the hub as MODEL, got the path");
  expect_failure(run_fovea({"pull", "model"}), 2, "expected a name on the hub");
}

TEST_F(PullProgram, RowsAreNamedAfterTheModel) {
  expect_success(run_fovea({"pull", "maker/model"}));
  const std::string model = golden_folder("qwen3_vl", "golden.safetensors");
  const std::string output = environment_.home() + "/rows.safetensors";
  expect_success(run_fovea({"encode", "maker/model", model + "/images/shapes_120x90.png",
                            "--device", "cpu", "-o", output}));
  EXPECT_THAT(read_text(output), HasSubstr(R"("fovea.model":"model")"));
}

}  // namespace
}  // namespace fovea::test
