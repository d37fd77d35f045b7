#include "checkpoint/dummy_weights.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "fovea/tower/core/dtype.h"

namespace fovea::checkpoint {
namespace {

constexpr std::size_t kCount = 1 << 20;

std::vector<std::uint16_t> weights(std::uint64_t seed, std::string_view name, float mean = 0.0f,
                                   std::size_t count = kCount) {
  std::vector<std::uint16_t> bits(count);
  fill_dummy_weights(seed, name, mean, bits);
  return bits;
}

std::vector<double> values(const std::vector<std::uint16_t>& bits) {
  std::vector<double> result;
  for (const std::uint16_t b : bits) result.push_back(bf16_to_f32(b));
  return result;
}

/// Mean of (value / deviation)^power.
double moment(const std::vector<double>& values, int power) {
  double sum = 0;
  for (const double value : values) sum += std::pow(value / kDummyDeviation, power);
  return sum / static_cast<double>(values.size());
}

/// Mean of the product of two standardised streams.
double correlation(const std::vector<double>& a, const std::vector<double>& b, std::size_t shift) {
  double sum = 0;
  for (std::size_t i = shift; i < a.size(); ++i) sum += a[i] * b[i - shift];
  return sum / static_cast<double>(a.size()) / (kDummyDeviation * kDummyDeviation);
}

/// With 2^20 samples the standard error of a mean of order 1 is 0.001; five of them.
constexpr double kSamplingError = 0.005;

TEST(DummyWeights, AreAFunctionOfSeedAndName) {
  EXPECT_EQ(weights(1, "a"), weights(1, "a"));
  EXPECT_NE(weights(1, "a"), weights(2, "a"));
  EXPECT_NE(weights(1, "a"), weights(1, "b"));
}

/// Benchmarks are comparable between versions only while these stay.
TEST(DummyWeights, StayWhatTheyAre) {
  EXPECT_EQ(weights(0, "model.weight", 0.0f, 4),
            (std::vector<std::uint16_t>{0x3b8e, 0xbc9b, 0x3c17, 0x3cb7}));
}

TEST(DummyWeights, DoNotDependOnTheLength) {
  const std::vector<std::uint16_t> all = weights(1, "a");
  const std::vector<std::uint16_t> some = weights(1, "a", 0.0f, 37);
  EXPECT_TRUE(std::equal(some.begin(), some.end(), all.begin()));
}

TEST(DummyWeights, HaveTheMomentsOfTheDocumentation) {
  const std::vector<double> sample = values(weights(1, "a"));
  EXPECT_NEAR(moment(sample, 1), 0.0, kSamplingError);
  EXPECT_NEAR(moment(sample, 2), 1.0, kSamplingError);
  EXPECT_NEAR(moment(sample, 3), 0.0, 4 * kSamplingError);
  EXPECT_NEAR(moment(sample, 4), 2.7, 8 * kSamplingError);
}

TEST(DummyWeights, EndAtTheDocumentedDistance) {
  for (const double value : values(weights(1, "a")))
    ASSERT_LE(std::abs(value), 3.46 * kDummyDeviation);
}

TEST(DummyWeights, AreShiftedByTheMean) {
  double sum = 0;
  for (const double value : values(weights(1, "a", 1.0f))) {
    ASSERT_NEAR(value, 1.0, 3.6 * kDummyDeviation);
    sum += value;
  }
  EXPECT_NEAR(sum / static_cast<double>(kCount), 1.0, kSamplingError * kDummyDeviation);
}

TEST(DummyWeights, OfNeighboursNamesAndSeedsAreUncorrelated) {
  const std::vector<double> a = values(weights(1, "blocks.0.weight"));
  for (const std::size_t shift : {1u, 2u, 3u, 4u, 16u, 1024u})
    EXPECT_NEAR(correlation(a, a, shift), 0.0, kSamplingError) << "shift " << shift;
  EXPECT_NEAR(correlation(a, values(weights(1, "blocks.1.weight")), 0), 0.0, kSamplingError);
  EXPECT_NEAR(correlation(a, values(weights(2, "blocks.0.weight")), 0), 0.0, kSamplingError);
}

TEST(DummyWeights, MayBeNone) { EXPECT_TRUE(weights(1, "a", 0.0f, 0).empty()); }

}  // namespace
}  // namespace fovea::checkpoint
