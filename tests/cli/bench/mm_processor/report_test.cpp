#include "bench/mm_processor/report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "bench/samples.h"
#include "support/json.h"

namespace fovea::cli {
namespace {

using fovea::test::Json;
using fovea::test::read_again;
using ::testing::HasSubstr;

constexpr std::array<double, 2> kPercents{90, 99};

/// Five requests, one of them much slower than the others.
WorkloadRun example(TowerMode mode, double factor) {
  WorkloadRun run{.mode = mode, .seconds = 2};
  for (const double ms : {1.0, 2.0, 3.0, 4.0, 100.0}) {
    RequestRecord record{.e2e_ms = 10 * ms * factor, .items = 2, .rows = 20, .encoder_calls = 1};
    record.times = {.read_ms = 1, .decode_ms = 2, .resize_ms = 3, .encode_ms = ms * factor};
    run.completed.push_back(record);
  }
  run.counts = {.hits = 9, .misses = 1, .encoder_calls = 5, .live_rows = 75, .padded_rows = 25};
  run.failures = {"a.png: broken"};
  return run;
}

TEST(MmReport, PercentilesAreInterpolatedAndDeviationsDivideByN) {
  const Json json = read_again(figures_json(example(TowerMode::kGraphs, 1), kPercents));
  const Json& forward = json["mm_processor_stats"]["encoder_forward_time"];
  EXPECT_DOUBLE_EQ(forward["mean"].get<double>(), 22);
  EXPECT_DOUBLE_EQ(forward["median"].get<double>(), 3);
  EXPECT_DOUBLE_EQ(forward["p90.0"].get<double>(), 61.6);
  EXPECT_DOUBLE_EQ(forward["p99.0"].get<double>(), 96.16);
  EXPECT_NEAR(forward["std"].get<double>(), 39.0128, 5e-5);
}

TEST(MmReport, KeysOfTheReference) {
  const Json json = read_again(figures_json(example(TowerMode::kGraphs, 1), kPercents));
  EXPECT_EQ(json["completed"], 5);
  EXPECT_EQ(json["failed"], 1);
  EXPECT_DOUBLE_EQ(json["mean_e2el_ms"].get<double>(), 220);
  EXPECT_DOUBLE_EQ(json["median_e2el_ms"].get<double>(), 30);
  EXPECT_NEAR(json["std_e2el_ms"].get<double>(), 390.128, 5e-4);
  ASSERT_EQ(json["percentiles_e2el_ms"].size(), 2U);
  EXPECT_EQ(json["percentiles_e2el_ms"][1][0], 99.0);
  EXPECT_DOUBLE_EQ(json["percentiles_e2el_ms"][1][1].get<double>(), 961.6);
  EXPECT_DOUBLE_EQ(json["mm_processor_stats"]["preprocessor_total_time"]["mean"].get<double>(), 6);
  EXPECT_DOUBLE_EQ(json["mm_processor_stats"]["num_encoder_calls"]["mean"].get<double>(), 1);
  EXPECT_EQ(json["encoder_summary"]["total_encoder_calls"], 5);
  EXPECT_EQ(json["encoder_summary"]["num_requests_with_encoder_calls"], 5);
}

TEST(MmReport, EncoderCallsPerRequestAreNullWhereNobodyKnows) {
  WorkloadRun run = example(TowerMode::kGraphs, 1);
  for (RequestRecord& record : run.completed) record.encoder_calls.reset();
  const Json json = read_again(figures_json(run, kPercents));
  EXPECT_TRUE(json["mm_processor_stats"]["num_encoder_calls"].is_null());
  EXPECT_TRUE(json["encoder_summary"]["num_requests_with_encoder_calls"].is_null());
  EXPECT_EQ(json["encoder_summary"]["total_encoder_calls"], 5);
}

TEST(MmReport, RatesAndShares) {
  const Json json = read_again(figures_json(example(TowerMode::kEager, 1), kPercents));
  EXPECT_EQ(json["mode"], "eager");
  EXPECT_EQ(json["items"], 10);
  EXPECT_EQ(json["rows"], 100);
  EXPECT_DOUBLE_EQ(json["items_per_s"].get<double>(), 5);
  EXPECT_DOUBLE_EQ(json["rows_per_s"].get<double>(), 50);
  EXPECT_DOUBLE_EQ(json["hit_rate"].get<double>(), 0.9);
  EXPECT_DOUBLE_EQ(json["padding"].get<double>(), 0.25);
  EXPECT_DOUBLE_EQ(json["stages"]["e2e_ms"]["p99.0"].get<double>(), 961.6);
  EXPECT_DOUBLE_EQ(json["stages"]["resize_ms"]["mean"].get<double>(), 3);
}

TEST(MmReport, NoSamplesAreZeros) {
  const Json json = read_again(figures_json(WorkloadRun{}, kPercents));
  EXPECT_EQ(json["mm_processor_stats"]["encoder_forward_time"],
            Json::parse(R"({"mean": 0.0, "median": 0.0, "std": 0.0, "p90.0": 0.0, "p99.0": 0.0})"));
  EXPECT_EQ(json["items_per_s"], 0.0);
  EXPECT_EQ(json["hit_rate"], 0.0);
  EXPECT_EQ(json["padding"], 0.0);
}

TEST(MmReport, TableOfOneRunShowsEveryStatistic) {
  const std::vector<WorkloadRun> runs{example(TowerMode::kGraphs, 1)};
  const std::string table = stage_table(runs, kPercents);
  EXPECT_THAT(table, HasSubstr("stage, ms           mean  median      std      p90      p99\n"));
  EXPECT_THAT(table, HasSubstr("encoder forward   22.000   3.000   39.013   61.600   96.160\n"));
}

TEST(MmReport, TableOfTwoRunsShowsRatios) {
  const std::vector<WorkloadRun> runs{example(TowerMode::kEager, 3),
                                      example(TowerMode::kGraphs, 2)};
  const std::string table = stage_table(runs, std::array<double, 1>{50});
  EXPECT_THAT(table,
              HasSubstr("eager mean  graphs mean  ratio  eager median  graphs median  ratio"));
  EXPECT_THAT(table, HasSubstr("66.000       44.000  1.50x         9.000          6.000  1.50x\n"));
  EXPECT_THAT(table, HasSubstr("pack                  0.000        0.000      -"));
  EXPECT_EQ(table.find("p50"), std::string::npos);  // the median is there
}

TEST(MmReport, RatesHaveOneLinePerRun) {
  const std::vector<WorkloadRun> runs{example(TowerMode::kEager, 3),
                                      example(TowerMode::kGraphs, 2)};
  EXPECT_THAT(rates_table(runs),
              HasSubstr("graphs         5       1     10   100      5.0    50.0"));
}

TEST(MmReport, PercentilesAreNamedAsPythonPrintsThem) {
  EXPECT_EQ(percentile_key(99), "p99.0");
  EXPECT_EQ(percentile_key(99.9), "p99.9");
  EXPECT_EQ(percentile_key(0), "p0.0");
}

}  // namespace
}  // namespace fovea::cli
