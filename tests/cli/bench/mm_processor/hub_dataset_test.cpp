#include "bench/mm_processor/hub_dataset.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

#include "support/expect_error.h"
#include "support/temporary_directory.h"

namespace fovea::cli {
namespace {

namespace fs = std::filesystem;

constexpr const char* kName = "lmarena-ai/VisionArena-Chat";
constexpr const char* kConvert =
    "`python3 tools/convert_dataset.py lmarena-ai/VisionArena-Chat --num-prompts 3 --num-warmups 2 "
    "--seed 42`";
constexpr HubRequests kWanted{.num_prompts = 3, .num_warmups = 2, .seed = 42};

/// Caches of this program and of the hub, both empty, for the time of a test.
class HubDatasetTest : public ::testing::Test {
 protected:
  HubDatasetTest() {
    unsetenv("HF_HOME");
    setenv("XDG_CACHE_HOME", folder_.path().c_str(), 1);
    setenv("HF_HUB_CACHE", (folder_ / "hub").c_str(), 1);
  }
  ~HubDatasetTest() override {
    unsetenv("HF_HUB_CACHE");
    unsetenv("XDG_CACHE_HOME");
  }

  /// Writes `count` requests of images 0.jpg, 1.jpg, ...
  static void convert(const HubDataset& dataset, std::uint64_t seed, int count) {
    std::string lines;
    for (int i = 0; i < count; ++i) lines += "{\"image\": \"" + std::to_string(i) + ".jpg\"}\n";
    const fs::path file = converted_file(dataset, seed);
    fs::create_directories(file.parent_path());
    test::write_text(file.string(), lines);
  }
  static void expect_not_found(const std::string& part, const HubDataset& dataset) {
    test::expect_error(ErrorCode::kNotFound, part,
                       [&] { (void)hub_requests(dataset, kWanted, 42, 3); });
  }

  test::TemporaryDirectory folder_;
};

TEST_F(HubDatasetTest, EverySplitAndSeedHasAFile) {
  const std::string below = folder_ / "fovea/datasets/";
  EXPECT_EQ(converted_file({.path = kName}, 42),
            below + "lmarena-ai--VisionArena-Chat/train/seed-42.jsonl");
  EXPECT_EQ(converted_file({.path = "a/b", .subset = "chart", .split = "test"}, 7),
            below + "a--b/chart--test/seed-7.jsonl");
  EXPECT_EQ(converted_file({.path = "/data/arena/", .hf_name = kName}, 0),
            below + "lmarena-ai--VisionArena-Chat/train/seed-0.jsonl");
  EXPECT_EQ(converted_file({.path = "/data/arena/"}, 0), below + "data--arena/train/seed-0.jsonl");
}

TEST_F(HubDatasetTest, TakesTheFirstRequestsInOrder) {
  convert({.path = kName}, 42, 5);
  const std::vector<MmRequest> requests = hub_requests({.path = kName}, kWanted, 42, 3);
  ASSERT_EQ(requests.size(), 3U);
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(fs::path(requests[i].files[0].paths()[0]).filename(), std::to_string(i) + ".jpg");
  }
  EXPECT_TRUE(hub_requests({.path = kName}, kWanted, 43, 0).empty());  // needs no file
}

TEST_F(HubDatasetTest, SaysHowToGetADataSetThatIsNotThere) {
  expect_not_found(std::string(kName) + " has not been converted to " +
                       converted_file({.path = kName}, 42) + "; it is not in the hub cache " +
                       folder_ / "hub" + "; run `hf download " + kName +
                       " --repo-type dataset`, then " + kConvert,
                   {.path = kName});
}

TEST_F(HubDatasetTest, FindsTheSnapshotThatIsToBeConverted) {
  const fs::path repository = folder_ / "hub/datasets--lmarena-ai--VisionArena-Chat";
  fs::create_directories(repository / "snapshots" / "0123abc");
  fs::create_directories(repository / "refs");
  test::write_text((repository / "refs/main").string(), "0123abc");
  expect_not_found("; the hub cache has it in " + (repository / "snapshots/0123abc").string() +
                       "; run " + kConvert,
                   {.path = kName});
}

TEST_F(HubDatasetTest, TheCommandHasTheFlagsThatWereGiven) {
  expect_not_found("; run `python3 tools/convert_dataset.py " + folder_.path() +
                       " --num-prompts 3 --num-warmups 2 --seed 42 --hf-name a/b --hf-subset s "
                       "--hf-split test`",
                   {.path = folder_.path(), .hf_name = "a/b", .subset = "s", .split = "test"});
}

TEST_F(HubDatasetTest, TooFewRequestsAreConvertedAgain) {
  convert({.path = kName}, 42, 2);
  expect_not_found("seed-42.jsonl holds 2 requests, expected 3; ", {.path = kName});
  expect_not_found(kConvert, {.path = kName});
}

TEST_F(HubDatasetTest, OtherTextsAreNoDataSets) {
  expect_not_found("; expected <organisation>/<name> or a directory that exists",
                   {.path = "VisionArena"});
}

}  // namespace
}  // namespace fovea::cli
