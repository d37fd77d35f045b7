// fovea bench mm-processor: that every request is there and the figures agree with one another,
// never how large they are.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "integration/run_program.h"
#include "support/golden.h"
#include "support/json.h"
#include "support/temporary_directory.h"

namespace fovea::test {
namespace {

using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::StartsWith;

class BenchMmProcessor : public ::testing::Test {
 protected:
  [[nodiscard]] ProgramResult bench(std::vector<std::string> arguments) const {
    arguments.insert(arguments.begin(), {"bench", "mm-processor", model_, "--device", "cpu",
                                         "--output-json", folder_ / "out.json"});
    return run_fovea(std::move(arguments));
  }
  [[nodiscard]] Json report() const { return Json::parse(read_text(folder_ / "out.json")); }

  const std::string model_ = golden_folder("qwen3_vl", "model.safetensors");
  TemporaryDirectory folder_;
};

void expect_ordered(const Json& statistics) {
  EXPECT_GT(statistics["median"].get<double>(), 0);
  EXPECT_LE(statistics["median"].get<double>(), statistics["p90.0"].get<double>());
  EXPECT_LE(statistics["p90.0"].get<double>(), statistics["p99.9"].get<double>());
  EXPECT_GE(statistics["std"].get<double>(), 0);
}

// 64 x 64 pixels are 16 patches, 4 rows; 4 frames of them twice as many.
constexpr const char* kSmall = "{(64, 64, 1): 1.0}";
constexpr const char* kMixed = "{(64, 64, 1): 0.5, (64, 64, 4): 0.5}";

TEST_F(BenchMmProcessor, ReportsEveryStage) {
  const ProgramResult result =
      bench({"--random-mm-bucket-config", kSmall, "--random-mm-base-items-per-request", "3",
             "--num-prompts", "4", "--num-warmups", "2", "--metric-percentiles", "90,99.9",
             "--token-budgets", "16,64", "--max-items-per-batch", "8"});
  expect_success(result);
  EXPECT_THAT(result.out, StartsWith("stage, ms"));
  EXPECT_THAT(result.out, HasSubstr("\nencoder forward "));
  EXPECT_THAT(result.out, HasSubstr("\ngraphs         4       0     12    48 "));

  const Json out = report();
  EXPECT_EQ(out["benchmark"], "mm-processor");
  EXPECT_EQ(out["mode"], "graphs");
  EXPECT_EQ(out["completed"], 4);
  EXPECT_EQ(out["failed"], 0);
  EXPECT_EQ(out["items"], 12);
  EXPECT_EQ(out["rows"], 48);
  EXPECT_EQ(out["graph_hits"], 12);  // warm-ups do not count
  EXPECT_EQ(out["hit_rate"], 1.0);
  EXPECT_EQ(out["live_rows"], 48);
  EXPECT_EQ(out["padded_rows"], 4 * (16 - 12));
  EXPECT_EQ(out["encoder_summary"]["total_encoder_calls"], 4);
  EXPECT_EQ(out["encoder_summary"]["num_requests_with_encoder_calls"], 4);
  EXPECT_EQ(out["mm_processor_stats"]["num_encoder_calls"]["mean"], 1.0);
  for (const char* key : {"decode_ms", "resize_ms", "pack_ms", "encoder_forward_ms", "output_ms"}) {
    SCOPED_TRACE(key);
    expect_ordered(out["stages"][key]);
    EXPECT_LE(out["stages"][key]["mean"].get<double>(),
              out["stages"]["e2e_ms"]["mean"].get<double>() * 3);  // items side by side
  }
  EXPECT_EQ(out["stages"]["encoder_forward_ms"], out["mm_processor_stats"]["encoder_forward_time"]);
  EXPECT_DOUBLE_EQ(out["stages"]["e2e_ms"]["mean"].get<double>(),
                   out["mean_e2el_ms"].get<double>());
  EXPECT_NEAR(out["rows_per_s"].get<double>() / out["items_per_s"].get<double>(), 4, 1e-9);
  EXPECT_EQ(out["config"]["num_warmups"], 2);
  EXPECT_EQ(out["config"]["media_profile"], "vllm");
}

TEST_F(BenchMmProcessor, ComparesEagerAndGraphs) {
  const ProgramResult result =
      bench({"--random-mm-bucket-config", kMixed, "--random-mm-base-items-per-request", "2",
             "--num-prompts", "3", "--compare", "--seed", "4", "--encoded", "raw"});
  expect_success(result);
  EXPECT_THAT(result.out, ContainsRegex("eager mean +graphs mean +ratio"));  // as wide as ratios
  const Json out = report();
  EXPECT_EQ(out["mode"], "graphs");
  EXPECT_EQ(out["eager"]["mode"], "eager");
  for (const char* key : {"completed", "items", "rows"}) EXPECT_EQ(out[key], out["eager"][key]);
  EXPECT_EQ(out["graph_hits"], 6);
  EXPECT_EQ(out["eager"]["graph_hits"], 0);
  EXPECT_EQ(out["eager"]["graph_misses"], 6);
  EXPECT_EQ(out["stages"]["decode_ms"]["mean"], 0.0);  // raw pixels
  // Beside them the warm-up and the largest request once more, in both modes.
  EXPECT_EQ(out["stats"]["graph_hits"], 6 + 2 + 2);
  EXPECT_EQ(out["stats"]["graph_misses"], 6 + 2 + 2);
}

TEST_F(BenchMmProcessor, RequestsMayArriveSideBySide) {
  for (const std::vector<std::string>& how :
       {std::vector<std::string>{"--max-concurrency", "3"},
        {"--request-rate", "1000"},
        {"--request-rate", "1000", "--max-concurrency", "2", "--enforce-eager"}}) {
    std::vector<std::string> arguments{"--random-mm-bucket-config", kSmall, "--num-prompts", "5"};
    arguments.insert(arguments.end(), how.begin(), how.end());
    expect_success(bench(arguments));
    const Json out = report();
    EXPECT_EQ(out["completed"], 5);
    EXPECT_EQ(out["rows"], 20);
    EXPECT_EQ(out["encoder_summary"]["total_encoder_calls"], 5);
    EXPECT_TRUE(out["encoder_summary"]["num_requests_with_encoder_calls"].is_null());
    EXPECT_EQ(out["mode"], how.size() == 5 ? "eager" : "graphs");
    EXPECT_GT(out["seconds"].get<double>(), 0);
  }
}

TEST_F(BenchMmProcessor, ReadsDirectories) {
  expect_success(bench({"--dataset-name", "dir", "--dataset-path", model_ + "/images",
                        "--num-prompts", "8", "--num-warmups", "0"}));
  const Json out = report();
  EXPECT_EQ(out["items"], 8);
  EXPECT_EQ(out["rows"], 2 * 66);  // each of the four images twice
  EXPECT_GT(out["stages"]["read_ms"]["mean"].get<double>(), 0);
}

TEST_F(BenchMmProcessor, ReadsFilesOfRequests) {
  write_text(folder_ / "requests.jsonl", Json({{"images", {model_ + "/images/photo_180x180.jpg"}},
                                               {"video", model_ + "/video_frames"}})
                                                 .dump() +
                                             "\n");
  expect_success(bench({"--dataset-name", "jsonl", "--dataset-path", folder_ / "requests.jsonl",
                        "--num-prompts", "2"}));
  EXPECT_EQ(report()["items"], 4);
  EXPECT_EQ(report()["rows"], 2 * (36 + 90));
}

TEST_F(BenchMmProcessor, RunsADataSetOfTheHubThatWasConverted) {
  const std::string converted = folder_ / "fovea/datasets/org--arena/train";
  std::filesystem::create_directories(converted);
  const std::string line = Json({{"image", model_ + "/images/photo_180x180.jpg"}}).dump() + "\n";
  write_text(converted + "/seed-42.jsonl", line + line + line);
  write_text(converted + "/seed-43.jsonl", line);
  const std::vector<std::string> command{"bench",           "mm-processor",
                                         "--model",         model_,
                                         "--dataset-name",  "hf",
                                         "--dataset-path",  "org/arena",
                                         "--num-prompts",   "2",
                                         "--num-warmups",   "1",
                                         "--max-model-len", "32768",
                                         "--seed",          "42",
                                         "--hf-split",      "train",
                                         "--output-json",   folder_ / "out.json"};
  expect_success(run_fovea(command, "", folder_.path()));
  EXPECT_EQ(report()["completed"], 2);
  EXPECT_EQ(report()["rows"], 2 * 36);
  EXPECT_EQ(report()["config"]["dataset_path"], "org/arena");
  EXPECT_EQ(report()["config"]["hf_split"], "train");
}

TEST_F(BenchMmProcessor, SaysHowToConvertADataSetOfTheHub) {
  const std::vector<std::string> command{"bench",          "mm-processor", model_,
                                         "--dataset-name", "hf",           "--dataset-path",
                                         "org/arena",      "--seed",       "42"};
  expect_failure(run_fovea(command, "", folder_.path()), 1,
                 "run `hf download org/arena --repo-type dataset`, then `python3 "
                 "tools/convert_dataset.py org/arena --num-prompts 10 --num-warmups 1 --seed 42`");
  expect_failure(run_fovea(command), 1, "org/arena: expected XDG_CACHE_HOME or HOME");
}

TEST_F(BenchMmProcessor, MixedSizesNeedNoData) {
  expect_success(bench({"--dataset-name", "vision-arena-like", "--num-prompts", "1",
                        "--num-warmups", "0", "--max-pixels", "65536"}));
  EXPECT_EQ(report()["items"], 1);
}

TEST_F(BenchMmProcessor, FailedRequestsAreCountedAndReported) {
  write_text(folder_ / "requests.jsonl",
             Json({{"image", "none.png"}}).dump() + "\n" +
                 Json({{"image", model_ + "/images/noise_101x61.png"}}).dump() + "\n");
  const ProgramResult result = bench({"--dataset-name", "jsonl", "--dataset-path",
                                      folder_ / "requests.jsonl", "--num-prompts", "4"});
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_THAT(result.err, StartsWith("fovea: warning: 2 requests failed; the first: "));
  EXPECT_THAT(result.err, HasSubstr("none.png"));
  EXPECT_EQ(report()["completed"], 2);
  EXPECT_EQ(report()["failed"], 2);
  EXPECT_EQ(report()["rows"], 12);
}

TEST_F(BenchMmProcessor, WhatFailedRequestsDidCountsHoweverTheyAreSent) {
  write_text(folder_ / "requests.jsonl",
             Json({{"images", {"none.png", model_ + "/images/noise_101x61.png"}}}).dump() + "\n" +
                 Json({{"image", model_ + "/images/noise_101x61.png"}}).dump() + "\n");
  for (const char* concurrency : {"1", "2"}) {
    EXPECT_EQ(bench({"--dataset-name", "jsonl", "--dataset-path", folder_ / "requests.jsonl",
                     "--num-prompts", "2", "--max-concurrency", concurrency})
                  .exit_code,
              0);
    EXPECT_EQ(report()["items"], 1);
    EXPECT_EQ(report()["graph_hits"], 2);
  }
}

TEST_F(BenchMmProcessor, NothingButFailuresIsAFailure) {
  write_text(folder_ / "requests.jsonl", "{\"image\": \"none.png\"}");
  const ProgramResult result = bench({"--dataset-name", "jsonl", "--dataset-path",
                                      folder_ / "requests.jsonl", "--num-prompts", "2"});
  expect_failure(result, 1, "all 2 requests failed; the first: ");
}

TEST_F(BenchMmProcessor, SizesBeyondTheLimitsAreRefusedBeforeTheirPixelsAreMade) {
  expect_failure(bench({"--random-mm-bucket-config", "{(64, 64, 1): 0.5, (65535, 65535, 1): 0.5}"}),
                 1, "65535x65535: expected at most 178956970 pixels, got 65535 x 65535");
}

TEST_F(BenchMmProcessor, FlagsWithoutEffectAreNamed) {
  const ProgramResult result =
      bench({"--dataset-name", "dir", "--dataset-path", model_ + "/images", "--num-prompts", "1",
             "--random-input-len", "1024", "--encoded", "raw", "--random-mm-bucket-config", kSmall,
             "--disable-tqdm"});
  EXPECT_EQ(result.exit_code, 0);
  for (const char* flag : {"--random-input-len", "--encoded", "--random-mm-bucket-config"}) {
    EXPECT_THAT(result.err, HasSubstr(std::string("fovea: warning: ") + flag + " has no effect"));
  }
}

TEST_F(BenchMmProcessor, RefusesWhatCannotBeMeant) {
  const struct {
    std::vector<std::string> arguments;
    const char* complaint;
  } kCases[] = {
      {{"--dataset-name", "sharegpt"}, "expected random-mm, vision-arena-like, dir, jsonl, hf"},
      {{"--dataset-name", "hf"}, "--dataset-path is required by --dataset-name hf"},
      {{"--dataset-name", "dir"}, "--dataset-path is required by --dataset-name dir"},
      {{"--dataset-path", "x"}, "only dir, jsonl and hf read files"},
      {{"--compare", "--enforce-eager"}, "--compare needs graphs"},
      {{"--compare", "--request-rate", "3"}, "--compare sends one request at a time"},
      {{"--compare", "--max-concurrency", "3"}, "--compare sends one request at a time"},
      {{"--request-rate", "0"}, "--request-rate: expected a number from 0.001 to 1000000"},
      {{"--request-rate", "1e-320"}, "--request-rate: expected a number from 0.001 to 1000000"},
      {{"--num-prompts", "9223372036854775807"},
       "--num-prompts: expected a whole number from 1 to"},
      {{"--max-concurrency", "100000"},
       "--max-concurrency: expected a whole number from 1 to 1024"},
      {{"--limit-mm-per-prompt", ""}, "--limit-mm-per-prompt: expected a JSON object, got"},
      {{"--limit-mm-per-prompt", R"({"image": 0})"},
       "--limit-mm-per-prompt: expected at most 0 images in a request, the workload has one with"},
      {{"--metric-percentiles", "200"}, "--metric-percentiles: expected numbers from 0 to 100"},
      {{"--random-mm-num-mm-items-range-ratio", "2"}, "expected a number from 0 to 1"},
      {{"--random-mm-bucket-config", "{}"}, "expected a probability above 0"},
      {{"--random-mm-limit-mm-per-prompt", "3"}, "expected a JSON object"},
      {{"--num-warmups", "-1"}, "--num-warmups: expected a whole number from 0 to"},
  };
  for (const auto& [arguments, complaint] : kCases) {
    SCOPED_TRACE(complaint);
    expect_failure(bench(arguments), 2, complaint);
  }
}

}  // namespace
}  // namespace fovea::test
