#include "bench/latency_report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/json.h"

namespace fovea::cli {
namespace {

using fovea::test::read_again;

using ::testing::HasSubstr;

/// `count` items of 64 patches that take 4 ms eagerly and 2 ms replayed.
Measurement example(std::int64_t threads, std::int64_t count = 1) {
  Measurement m{.threads = threads, .load = {.count = count, .patches = 64}};
  m.timing.items = count;
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
  EXPECT_TRUE(read_again(results_json(std::vector{m}))[0]["replay_ms"].is_null());
  EXPECT_TRUE(read_again(results_json(std::vector{m}))[0]["peak_gflops_per_s"].is_null());
}

TEST(LatencyReport, EnergyIsThatOfARunAnItemAndARow) {
  Measurement m = example(0, 4);
  EXPECT_EQ(energy_table(std::vector{m}), "");
  EXPECT_TRUE(read_again(results_json(std::vector{m}))[0]["energy"].is_null());
  m.energy = TowerEnergy{.runs = 100, .run_ms = 20, .watts = 640, .uncertainty = 0.05};
  EXPECT_EQ(energy_table(std::vector{example(0), m}),
            "patches  rows  runs  mean ms    W       J  J/item   mJ/row     +-\n"
            "-------  ----  ----  -------  ---  ------  ------  -------  -----\n"
            " 4 x 64    64   100    20.00  640  12.800   3.200  200.000  5.0 %\n");
  const auto json = read_again(results_json(std::vector{m}))[0]["energy"];
  EXPECT_EQ(json["runs"], 100);
  EXPECT_DOUBLE_EQ(json["joules"].get<double>(), 12.8);
  EXPECT_DOUBLE_EQ(json["joules_per_item"].get<double>(), 3.2);
  EXPECT_DOUBLE_EQ(json["joules_per_row"].get<double>(), 0.2);
  EXPECT_DOUBLE_EQ(json["uncertainty"].get<double>(), 0.05);
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

}  // namespace
}  // namespace fovea::cli
