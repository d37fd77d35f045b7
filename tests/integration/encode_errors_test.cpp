// fovea encode on the golden checkpoint: what fails or is warned about, and what that leaves
// behind.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <algorithm>
#include <filesystem>

#include "checkpoint/safetensors.h"
#include "integration/encode_program.h"
#include "support/json.h"

namespace fovea::test {
namespace {

using checkpoint::SafetensorsFile;

TEST_F(EncodeProgram, PixelValuesOfAnotherKindFailWithoutOutput) {
  expect_failure(encode({"--pixel-values", folder_ / "none.safetensors"}), 1, "none.safetensors");
  expect_failure(encode({"--pixel-values", model_ + "/model.safetensors"}), 1,
                 "model.safetensors: expected pixel_values with image_grid_thw");
  EXPECT_EQ(folder_.entries(), 0U);
}

TEST_F(EncodeProgram, OptionsThatTheModelDoesNotTakeFailWithoutOutput) {
  const auto with = [&](const char* options) {
    return encode({photo_, "--mm-processor-kwargs", options});
  };
  expect_failure(with(R"({"crop": 1})"), 2,
                 "--mm-processor-kwargs: mm_processor_kwargs: crop: no option");
  expect_failure(with("{"), 2, "--mm-processor-kwargs: JSON: line 1, column 2");
  expect_failure(with("[]"), 2, "--mm-processor-kwargs: JSON: expected a JSON object");
  EXPECT_EQ(folder_.entries(), 0U);
}

TEST_F(EncodeProgram, MissingImageFailsWithoutOutput) {
  expect_failure(encode({photo_, folder_ / "none.png", "--stats", folder_ / "stats.json"}), 1,
                 "none.png");
  EXPECT_EQ(folder_.entries(), 0U);
}

TEST_F(EncodeProgram, BrokenImageFailsWithoutOutput) {
  write_text(folder_ / "broken.png", read_text(noise_).substr(0, 100));
  expect_failure(encode({folder_ / "broken.png"}), 1, "broken.png");
  EXPECT_EQ(folder_.entries(), 1U);
}

TEST_F(EncodeProgram, FailureLeavesTheOldOutput) {
  write_text(output(), "old");
  expect_failure(encode({folder_ / "none.png"}), 1, "none.png");
  EXPECT_EQ(read_text(output()), "old");
}

TEST_F(EncodeProgram, ListsThatAreNoFilesFail) {
  ASSERT_EQ(mkfifo((folder_ / "pipe").c_str(), 0600), 0);
  for (const std::string& list : {folder_ / "pipe", std::string("/dev/zero")}) {
    expect_failure(encode({"@" + list}), 1, list + ": not a regular file");
    expect_failure(run_fovea({"plan", model_, "--sizes", "@" + list}), 1, "not a regular file");
  }
}

TEST_F(EncodeProgram, MissingVideoFails) {
  expect_failure(encode({"--video", folder_ / "none.mp4"}), 1, "none.mp4");
}

TEST_F(EncodeProgram, MissingModelFails) {
  expect_failure(run_fovea({"encode", folder_ / "model", noise_, "-o", output()}), 1,
                 folder_ / "model");
}

TEST_F(EncodeProgram, UnwritableOutputFails) {
  expect_failure(run_fovea({"encode", model_, noise_, "-o", "/nonexistent/rows.safetensors"}), 1,
                 "/nonexistent/rows.safetensors");
}

TEST_F(EncodeProgram, OneFileForTwoOutputsIsRefused) {
  expect_failure(encode({noise_, "--stats", output()}), 2, output());
  EXPECT_EQ(folder_.entries(), 0U);
}

TEST_F(EncodeProgram, AnOutputThatIsAnInputIsRefusedBeforeTheWork) {
  const std::string mine = folder_ / "mine.png";
  const std::string list = folder_ / "list";
  const std::string frames = folder_ / "frames";
  const std::string model = folder_ / "model";
  std::filesystem::copy(noise_, mine);
  write_text(list, mine + "\n");
  std::filesystem::create_directory(frames);
  std::filesystem::copy(noise_, frames + "/0.png");
  std::filesystem::create_directory(model);
  for (const char* name : {"/config.json", "/model.safetensors"}) write_text(model + name, "mine");
  using Arguments = std::vector<std::string>;
  for (const auto& [arguments, input] : std::vector<std::pair<Arguments, std::string>>{
           {{mine, "-o", mine}, mine},
           {{folder_.path(), "-o", output(), "--stats", mine}, mine},
           {{"@" + list, "-o", output(), "--stats", list}, list},
           {{"@" + list, "-o", mine}, mine},
           {{"--pixel-values", mine, "-o", mine}, mine},
           {{"--video", frames, "-o", frames + "/0.png"}, frames + "/0.png"},
           {{noise_, "-o", model + "/model.safetensors"}, model + "/model.safetensors"}}) {
    Arguments all{"encode", model};
    all.insert(all.end(), arguments.begin(), arguments.end());
    const std::string before = read_text(input);
    expect_failure(run_fovea(all), 2, "got the input " + input);
    EXPECT_EQ(read_text(input), before);
  }
}

TEST_F(EncodeProgram, ReportsOfBenchReplaceNoInput) {
  const std::string sizes = folder_ / "sizes";
  write_text(sizes, "64x64\n");
  for (const char* verb : {"serve", "latency"}) {
    expect_failure(
        run_fovea({"bench", verb, model_, "--sizes", "@" + sizes, "--output-json", sizes}), 2,
        "got the input " + sizes);
  }
  EXPECT_EQ(read_text(sizes), "64x64\n");
}

TEST_F(EncodeProgram, WarnsOfRowsThatAreNotFinite) {
  const std::string model = folder_ / "model";
  std::filesystem::copy(model_, model);
  std::string weights = read_text(model + "/model.safetensors");
  std::fill(weights.end() - 4096, weights.end(), '\xff');  // bf16 NaN
  write_text(model + "/model.safetensors", weights);
  for (const char* dtype : {"float32", "bfloat16", "float16"}) {
    const ProgramResult result =
        run_fovea({"encode", model, noise_, "-o", output(), "--dtype", dtype});
    EXPECT_EQ(result.exit_code, 0);
    EXPECT_EQ(result.err,
              "fovea: warning: item_0: rows of " + noise_ + " hold values that are not finite\n");
  }
}

TEST_F(EncodeProgram, AFileAboveTheLimitOfTheProcessIsAnError) {
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  const rlimit small{100, before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);  // the program inherits it
  const ProgramResult result = encode({noise_});
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &before), 0);
  expect_failure(result, 1, "cannot write: File too large");
  EXPECT_EQ(folder_.entries(), 0U);
}

TEST_F(EncodeProgram, MissingGoldenFileFailsBeforeTheModelIsLoaded) {
  expect_failure(
      run_fovea({"encode", folder_ / "model", noise_, "-o", output(), "--golden", folder_.path()}),
      1, "golden.safetensors");
  EXPECT_EQ(folder_.entries(), 0U);
}

TEST_F(EncodeProgram, SkippedItemsAreReportedAndTheRestIsWritten) {
  write_text(folder_ / "broken.png", "no image");
  const ProgramResult result =
      encode({folder_ / "broken.png", noise_, "--video", folder_ / "none.mp4", photo_, "--on-error",
              "skip", "--stats", folder_ / "stats.json"});
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_THAT(result.err,
              ::testing::MatchesRegex("fovea: warning: item_0 skipped: .*broken.png.*\n"
                                      "fovea: warning: item_2 skipped: .*none.mp4.*\n"));
  const SafetensorsFile file(output());
  EXPECT_EQ(file.find("item_0"), nullptr);
  EXPECT_EQ(file.find("item_2"), nullptr);
  EXPECT_EQ(file.find("item_1")->shape.front(), 6);
  EXPECT_EQ(file.find("item_3")->shape.front(), 36);
  const Json items = Json::parse(file.header().metadata.at("fovea.items"));
  ASSERT_EQ(items.size(), 4U);
  EXPECT_TRUE(items[0].contains("error"));
  EXPECT_EQ(Json::parse(read_text(folder_ / "stats.json"))["failed_items"], 2);
}

TEST_F(EncodeProgram, SkippingEverythingFailsWithoutOutput) {
  const ProgramResult result = encode({folder_ / "a.png", folder_ / "b.png", "--on-error", "skip"});
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.err, ::testing::MatchesRegex("fovea: warning: item_0 skipped: .*a.png.*\n"
                                                  "fovea: warning: item_1 skipped: .*b.png.*\n"
                                                  "fovea: error: none of 2 items could be encoded; "
                                                  "the first: .*a.png.*\n"));
  EXPECT_EQ(std::ranges::count(result.err, '\n'), 3) << result.err;
  EXPECT_EQ(folder_.entries(), 0U);
}

TEST_F(EncodeProgram, PixelLimitIsChecked) {
  expect_failure(encode({photo_, "--max-image-pixels", "1000"}), 1, "photo_180x180.jpg");
}

TEST_F(EncodeProgram, UnknownConfigurationKeysAreWarnedAbout) {
  const ProgramResult result = encode({noise_, "--compilation-config", R"({"level": 3})"});
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_EQ(result.err, "fovea: warning: --compilation-config: key \"level\" is ignored\n");
}

}  // namespace
}  // namespace fovea::test
