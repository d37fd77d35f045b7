// fovea bench: that the figures are there and consistent, never how large they are.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "integration/run_program.h"
#include "support/golden.h"
#include "support/json.h"
#include "support/temporary_directory.h"

namespace fovea::test {
namespace {

using ::testing::HasSubstr;

std::string small_model() { return golden_folder("qwen3_vl", "model.safetensors"); }

void expect_ordered_times(const Json& summary) {
  EXPECT_GT(summary["min"].get<double>(), 0);
  EXPECT_LE(summary["min"].get<double>(), summary["median"].get<double>());
  EXPECT_LE(summary["median"].get<double>(), summary["p90"].get<double>());
  EXPECT_LE(summary["p90"].get<double>(), summary["p99"].get<double>());
  EXPECT_LE(summary["p99"].get<double>(), summary["max"].get<double>());
}

TEST(BenchLatency, ReportsEverySizeOnEveryNumberOfThreads) {
  const TemporaryDirectory folder;
  const ProgramResult result = run_fovea(
      {"bench", "latency", small_model(), "--patches", "16,64", "--threads", "1,2", "--warmups",
       "1", "--repetitions", "3", "--device", "cpu", "--output-json", folder / "out.json"});
  expect_success(result);
  EXPECT_THAT(result.out, HasSubstr("replay p50"));
  EXPECT_THAT(result.out, HasSubstr("speed-up over 1 thread\n"));

  const Json report = Json::parse(read_text(folder / "out.json"));
  EXPECT_EQ(report["benchmark"], "latency");
  ASSERT_EQ(report["results"].size(), 4U);
  for (const Json& entry : report["results"]) {
    expect_ordered_times(entry["eager_ms"]);
    expect_ordered_times(entry["replay_ms"]);
    EXPECT_EQ(entry["rows"].get<int>() * 4, entry["patches"].get<int>());  // merged 2 x 2
    EXPECT_GT(entry["flops"].get<double>(), 0);
    EXPECT_GT(entry["peak_gflops_per_s"].get<double>(), 0);
  }
  EXPECT_EQ(report["results"][3]["threads"], 2);
  EXPECT_EQ(report["results"][3]["patches"], 64);
}

TEST(BenchLatency, CasesHaveCountsOfTheirOwn) {
  const TemporaryDirectory folder;
  const ProgramResult result = run_fovea(
      {"bench", "latency", small_model(), "--cases", "1x16, 3x64, 1x144x5f", "--repetitions", "1",
       "--threads", "1", "--device", "cpu", "--output-json", folder / "out.json"});
  expect_success(result);
  EXPECT_THAT(result.out, HasSubstr(" 3 x 64 "));
  const Json results = Json::parse(read_text(folder / "out.json"))["results"];
  ASSERT_EQ(results.size(), 3U);
  EXPECT_EQ(results[0]["rows"], 4);
  EXPECT_EQ(results[0]["frames"], 0);
  EXPECT_EQ(results[2]["frames"], 5);
  EXPECT_EQ(results[2]["rows"], 108);
  EXPECT_EQ(results[1]["count"], 3);
  EXPECT_EQ(results[1]["patches"], 64);
  EXPECT_EQ(results[1]["rows"], 48);
  EXPECT_EQ(results[1]["token_budget"], 64);
}

TEST(BenchLatency, RefusesCasesThatAreNone) {
  for (const char* cases : {"64", "x64", "1x", "0x64", "1x64,", "2x64x3", "2x64xf", "2x64x0f"}) {
    expect_failure(run_fovea({"bench", "latency", small_model(), "--cases", cases}), 2, "--cases");
  }
  for (const char* flag : {"--count", "--patches", "--sizes"}) {
    expect_failure(run_fovea({"bench", "latency", small_model(), "--cases", "1x64", flag, "2"}), 2,
                   "--cases");
  }
  expect_failure(run_fovea({"bench", "latency", small_model(), "--sizes", "640"}), 2,
                 "size \"640\": expected WIDTHxHEIGHT");
}

TEST(BenchLatency, DummyWeightsNeedConfigurationsOnly) {
  const TemporaryDirectory folder;
  std::filesystem::copy(small_model() + "/config.json", folder / "config.json");
  expect_success(run_fovea({"bench", "latency", folder.path(), "--load-format", "dummy",
                            "--patches", "16", "--threads", "1", "--repetitions", "1"}));
}

TEST(BenchLatency, UsesAllThreadsByDefault) {
  const ProgramResult result = run_fovea({"bench", "latency", small_model(), "--patches", "16",
                                          "--repetitions", "1", "--device", "cpu"});
  expect_success(result);
  EXPECT_THAT(result.out, HasSubstr("of multiply-adds on all threads"));
}

TEST(BenchLatency, RefusesSizesThatNoImageHasUnderTheFlagThatGaveThem) {
  // 7 patches cannot be merged 2 x 2.
  const std::vector<std::string> bench{"bench", "latency", small_model(), "--threads", "1"};
  for (const auto& [flag, value] : {std::pair{"--patches", "7"}, {"--cases", "2x7"}}) {
    std::vector<std::string> arguments = bench;
    arguments.insert(arguments.end(), {flag, value});
    const ProgramResult result = run_fovea(arguments);
    expect_failure(result, 2, "7 patches");
    EXPECT_THAT(result.err, ::testing::StartsWith("fovea: error: " + std::string(flag) + ": "));
  }
}

TEST(BenchLatency, EnginesForSeveralThreadsWarnOnce) {
  const TemporaryDirectory folder;
  const std::string model = folder / "model";
  std::filesystem::copy(small_model(), model);
  std::filesystem::remove(model + "/preprocessor_config.json");
  const ProgramResult result = run_fovea(
      {"bench", "latency", model, "--patches", "16", "--threads", "1,2", "--repetitions", "1"});
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_THAT(result.err, HasSubstr("preprocessing.assumed"));
  EXPECT_EQ(std::ranges::count(result.err, '\n'), 1) << result.err;
}

TEST(BenchCapture, ReportsEveryGraphAndAnswersMeanwhile) {
  const TemporaryDirectory folder;
  const ProgramResult result =
      run_fovea({"bench", "capture", small_model(), "--size", "64x48", "--token-budgets", "16,64",
                 "--device", "cpu", "--output-json", folder / "out.json"});
  expect_success(result);
  EXPECT_THAT(result.out, HasSubstr("capture ms"));

  const Json report = Json::parse(read_text(folder / "out.json"));
  EXPECT_EQ(report["benchmark"], "capture");
  EXPECT_EQ(report["size"], "64x48");
  EXPECT_GT(report["first_answer_ms"].get<double>(), report["loaded_ms"].get<double>());
  EXPECT_GT(report["captured_ms"].get<double>(), report["loaded_ms"].get<double>());
  EXPECT_GT(report["answer_ms"].get<double>(), 0);
  std::vector<std::int64_t> budgets;
  for (const Json& graph : report["stats"]["graphs"]) {
    budgets.push_back(graph["budget"].get<int>());
    EXPECT_GT(graph["shared_bytes"].get<std::int64_t>(), 0);
  }
  EXPECT_THAT(budgets, ::testing::UnorderedElementsAre(16, 64));
}

TEST(BenchCapture, RefusesASizeBeyondTheLimits) {
  expect_failure(run_fovea({"bench", "capture", small_model(), "--size", "1000000x1000000"}), 1,
                 "1000000x1000000: expected sides of at most 65535 pixels");
}

TEST(BenchCapture, NeedsGraphs) {
  expect_failure(run_fovea({"bench", "capture", small_model(), "--enforce-eager"}), 2,
                 "bench capture needs graphs");
}

TEST(BenchThroughput, ReportsStagesAndRates) {
  const TemporaryDirectory folder;
  const ProgramResult result =
      run_fovea({"bench", "throughput", small_model(), small_model() + "/images", "--repeat", "2",
                 "--output-json", folder / "out.json"});
  expect_success(result);
  EXPECT_THAT(result.out, HasSubstr("items/s"));

  const Json report = Json::parse(read_text(folder / "out.json"));
  EXPECT_EQ(report["items"], 4);
  EXPECT_EQ(report["rows"], 66);
  expect_ordered_times(report["run_ms"]);
  for (const char* stage : {"read_ms", "decode_ms", "resize_ms", "encode_ms"}) {
    EXPECT_TRUE(report["stages"].contains(stage)) << stage;
  }
  EXPECT_NEAR(report["rows_per_s"].get<double>() / report["items_per_s"].get<double>(), 66.0 / 4,
              1e-9);
}

TEST(BenchServe, ComparesClientsAndArrivalsWithOneCall) {
  const TemporaryDirectory folder;
  const std::vector<std::string> bench{"bench",   "serve",       small_model(),
                                       "--sizes", "64x64,96x64", "--num-requests",
                                       "12",      "--max-delay", "0,1000"};
  std::vector<std::string> clients = bench;
  clients.insert(clients.end(), {"--clients", "3", "--output-json", folder / "out.json"});
  const ProgramResult closed = run_fovea(clients);
  expect_success(closed);
  EXPECT_THAT(closed.out, HasSubstr("items/batch"));
  EXPECT_THAT(closed.out, HasSubstr("12 requests of one image, 3 clients"));
  const Json report = Json::parse(read_text(folder / "out.json"));
  ASSERT_EQ(report["results"].size(), 4u);
  EXPECT_EQ(report["results"][1]["way"], "engine");
  EXPECT_EQ(report["results"][3]["delay_us"], 1000);

  std::vector<std::string> rate = bench;
  rate.insert(rate.end(), {"--rate", "200"});
  const ProgramResult open = run_fovea(rate);
  expect_success(open);
  EXPECT_THAT(open.out, HasSubstr("200.0 per second"));
  expect_failure(run_fovea({"bench", "serve", small_model(), "--rate", "0"}), 2, "--rate");
  expect_failure(run_fovea({"bench", "serve", small_model(), "--sizes", "64x64x4f"}), 2, "--sizes");
}

TEST(BenchThroughput, CapturesBeforeItCountsAndCountsRepetitionsAlone) {
  const TemporaryDirectory folder;
  expect_success(run_fovea({"bench", "throughput", small_model(), small_model() + "/images",
                            "--token-budgets", "64,256", "--warmups", "3", "--repeat", "2",
                            "--device", "cpu", "--output-json", folder / "out.json"}));
  const Json report = Json::parse(read_text(folder / "out.json"));
  EXPECT_EQ(report["stats"]["num_budgets"], 2);  // the four together need the larger one
  EXPECT_EQ(report["graph_hits"], 2 * 4);
  EXPECT_EQ(report["stats"]["graph_hits"], 5 * 4);
}

TEST(BenchThroughput, StopsAtAnUnreadableFile) {
  expect_failure(run_fovea({"bench", "throughput", small_model(), "/nonexistent/a.png"}), 1,
                 "/nonexistent/a.png");
}

TEST(BenchCache, ReportsBothStoragesAtEverySize) {
  const TemporaryDirectory folder;
  const ProgramResult result =
      run_fovea({"bench", "cache", "--shapes", "100,8x20", "--num-requests", "20", "--seed", "3",
                 "--encoder-cache-size", "500,5000", "--chunk-size", "256", "--output-json",
                 folder / "out.json"});
  expect_success(result);
  EXPECT_THAT(result.out, HasSubstr("scattered"));
  const Json report = Json::parse(read_text(folder / "out.json"));
  EXPECT_EQ(report["benchmark"], "cache");
  ASSERT_EQ(report["results"].size(), 4U);
  for (const Json& entry : report["results"]) {
    EXPECT_LE(entry["peak_used"].get<int>(), entry["capacity"].get<int>());
    EXPECT_EQ(entry["items"], report["results"][0]["items"]);
    EXPECT_GT(entry["hits"].get<int>(), 0);
  }
}

TEST(BenchCache, ReplaysTheRequestsOfAFile) {
  const TemporaryDirectory folder;
  std::ofstream(folder / "trace") << R"({"items": [{"key": "a", "patches": 2, "rows": 9}]})";
  const ProgramResult result = run_fovea({"bench", "cache", "--trace", folder / "trace"});
  expect_success(result);
  EXPECT_THAT(result.out, HasSubstr("1 request, steps of 8192 tokens"));
  expect_failure(run_fovea({"bench", "cache", "--trace", folder / "none"}), 1, "none");
}

}  // namespace
}  // namespace fovea::test
