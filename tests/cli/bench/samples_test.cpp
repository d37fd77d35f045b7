#include "bench/samples.h"

#include <gtest/gtest.h>

#include <vector>

namespace fovea::cli {
namespace {

// The values that vLLM's benchmark metrics give for the same samples.
TEST(Samples, MatchTheReferenceOnKnownSamples) {
  const std::vector<double> samples{1, 2, 3, 4, 100};
  const Summary summary = summarize(samples);
  EXPECT_DOUBLE_EQ(summary.mean, 22);
  EXPECT_DOUBLE_EQ(summary.median, 3);
  EXPECT_DOUBLE_EQ(summary.p90, 61.6);
  EXPECT_DOUBLE_EQ(summary.p99, 96.16);
  EXPECT_DOUBLE_EQ(summary.min, 1);
  EXPECT_DOUBLE_EQ(summary.max, 100);
}

TEST(Samples, DeviationDividesByTheNumberOfSamples) {
  EXPECT_NEAR(population_std(std::vector<double>{1, 2, 3, 4, 100}), 39.0128, 5e-5);
  EXPECT_DOUBLE_EQ(population_std(std::vector<double>{7}), 0);
}

TEST(Samples, SummariesAreJsonUnderTheNamesOfTheirFields) {
  EXPECT_EQ(to_json_text(to_json({.mean = 1, .median = 2, .p90 = 3, .p99 = 4, .min = 5, .max = 6})),
            R"({"mean":1.0,"median":2.0,"p90":3.0,"p99":4.0,"min":5.0,"max":6.0})");
}

TEST(Samples, OrderDoesNotMatter) {
  EXPECT_DOUBLE_EQ(percentile(std::vector<double>{5, 1, 3}, 50), 3);
}

TEST(Samples, OneSampleIsEveryPercentile) {
  EXPECT_DOUBLE_EQ(percentile(std::vector<double>{7}, 0), 7);
  EXPECT_DOUBLE_EQ(percentile(std::vector<double>{7}, 99), 7);
}

TEST(Samples, NoSamplesAreZero) {
  EXPECT_DOUBLE_EQ(percentile({}, 50), 0);
  EXPECT_DOUBLE_EQ(summarize({}).p99, 0);
  EXPECT_DOUBLE_EQ(population_std({}), 0);
}

}  // namespace
}  // namespace fovea::cli
