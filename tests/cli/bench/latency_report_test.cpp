#include "bench/latency_report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace fovea::cli {
namespace {

using ::testing::HasSubstr;

/// `count` items of 64 patches that take 4 ms eagerly and 2 ms replayed.
Measurement example(std::int64_t threads, std::int64_t count = 1) {
  Measurement m{.threads = threads, .what = {.count = count, .patches = 64}};
  m.timing.rows = 16 * count;
  m.timing.budget = 64;
  m.timing.flops = 8e9;
  m.timing.eager_ms = {4, 4, 4};
  m.timing.replay_ms = {2, 2, 2};
  return m;
}

TEST(LatencyReport, RatesAreThoseOfTheFasterWay) {
  Measurement m = example(1);
  EXPECT_DOUBLE_EQ(m.best_ms(), 2);
  EXPECT_DOUBLE_EQ(m.gflops(), 4000);
  m.timing.replay_ms = {8};
  EXPECT_DOUBLE_EQ(m.best_ms(), 4);
  m.timing.replay_ms.clear();
  EXPECT_DOUBLE_EQ(m.best_ms(), 4);
}

TEST(LatencyReport, ZeroThreadsAreAll) {
  EXPECT_EQ(threads_text(0), "all threads");
  EXPECT_EQ(threads_text(1), "1 thread");
  EXPECT_THAT(timing_table(std::vector{example(0)}), HasSubstr("\n    all   1 x 64 "));
}

TEST(LatencyReport, WhatWasNotMeasuredIsADash) {
  Measurement m = example(1);
  m.timing.replay_ms.clear();
  m.timing.budget = 0;
  EXPECT_THAT(timing_table(std::vector{m}),
              HasSubstr("  1 x 64    16       -       4.00       4.00       4.00           -"));
  EXPECT_TRUE(results_json(std::vector{m})[0]["replay_ms"].is_null());
  EXPECT_TRUE(results_json(std::vector{m})[0]["peak_gflops_per_s"].is_null());
}

TEST(LatencyReport, SpeedUpsAreRelativeToTheFirstNumberOfThreads) {
  Measurement fast = example(2);
  fast.timing.replay_ms = {1};
  const std::vector<std::int64_t> threads{1, 2};
  EXPECT_EQ(scaling_table(std::vector{example(1), fast}, threads),
            "patches  1 thread  2 threads\n"
            "-------  --------  ---------\n"
            " 1 x 64     1.00x      2.00x\n");
}

TEST(LatencyReport, LinesAreNamedAfterWhatDiffers) {
  const auto names = [](const std::vector<Measurement>& measurements) {
    std::vector<std::string> result;
    for (const LineSeries& line : latency_chart(measurements).series) result.push_back(line.name);
    return result;
  };
  using Names = std::vector<std::string>;
  EXPECT_EQ(names({example(1)}), (Names{"eager", "replay"}));
  EXPECT_EQ(names({example(1), example(2)}), (Names{"eager, 1 thread", "replay, 1 thread",
                                                    "eager, 2 threads", "replay, 2 threads"}));
  EXPECT_EQ(names({example(1, 1), example(1, 3)}),
            (Names{"eager, 1 image", "replay, 1 image", "eager, 3 images", "replay, 3 images"}));
}

}  // namespace
}  // namespace fovea::cli
