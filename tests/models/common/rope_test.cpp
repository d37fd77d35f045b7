// Frequencies of rotary positions. Angles of positions: grid/layers_test.cpp.
#include "models/common/rope.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>

#include "device/cpu/cpu_device.h"
#include "ops/cpu/cpu_kernels.h"

namespace fovea::common {
namespace {

std::vector<float> frequencies(std::int64_t head_dim, double theta) {
  const auto kernels = make_cpu_kernels(CpuIsa::kPortable, 1);
  const auto device = make_cpu_device(1, *kernels);
  const auto stream = device->create_stream();
  const auto weights = checkpoint::WeightSource::dummy(0);
  WeightLoader loader(weights, "", *device, *stream);
  const Tensor tensor = inverse_frequencies(loader, head_dim, theta);
  stream->synchronize();
  EXPECT_TRUE(loader.report().empty()) << "no checkpoint holds them";
  const auto* const values = tensor.view().as<float>();
  return {values, values + tensor.shape.elements()};
}

TEST(InverseFrequencies, FallFromOneByPowersOfTheta) {
  const std::vector<float> values = frequencies(16, 10000);
  ASSERT_EQ(values.size(), 8u);
  for (const std::size_t axis : {0u, 4u}) {  // rows, then columns
    EXPECT_EQ(values[axis], 1.0f);
    EXPECT_NEAR(values[axis + 1], 1e-1, 1e-8);
    EXPECT_NEAR(values[axis + 2], 1e-2, 1e-9);
    EXPECT_NEAR(values[axis + 3], 1e-3, 1e-10);
  }
}

TEST(InverseFrequencies, FollowThetaAndTheHeadDim) {
  const std::vector<float> values = frequencies(72, 500);
  ASSERT_EQ(values.size(), 36u);
  EXPECT_NEAR(values[9], 1 / std::sqrt(500.0), 1e-8);
}

constexpr std::int64_t kHalf = 4;
using Head = std::array<double, 2 * kHalf>;

/// Turns rows `first(j)` and `second(j)` by angles[j].
template <class First, class Second>
Head rotated(const Head& head, const std::array<double, kHalf>& angles, First first,
             Second second) {
  Head out{};
  for (std::size_t j = 0; j < angles.size(); ++j) {
    const double a = head[first(j)];
    const double b = head[second(j)];
    out[first(j)] = a * std::cos(angles[j]) - b * std::sin(angles[j]);
    out[second(j)] = a * std::sin(angles[j]) + b * std::cos(angles[j]);
  }
  return out;
}

TEST(RowOrder, BothRowsOfAPairGoToTheSamePlaceOfTheTwoHalves) {
  const std::array<std::int64_t, 3> pairs{2, 0, 1};
  EXPECT_EQ(halves_order(pairs), (RowOrder{4, 0, 2, 5, 1, 3}));
}

TEST(RowOrder, HalvesOfReorderedHeadsRotateAsThePairsOfTheStoredOnes) {
  const std::array<std::int64_t, kHalf> pairs{1, 3, 0, 2};
  const RowOrder order = halves_order(pairs);
  const Head head{0.3, -1.2, 0.7, 2.0, -0.4, 1.1, 0.9, -0.6};
  const std::array<double, kHalf> pair_angles{0.5, 1.5, 2.5, 3.5};
  const Head stored = rotated(
      head, pair_angles, [](std::size_t p) { return 2 * p; },
      [](std::size_t p) { return 2 * p + 1; });

  Head reordered{};
  for (std::size_t i = 0; i < head.size(); ++i) {
    reordered[i] = head[static_cast<std::size_t>(order[i])];
  }
  std::array<double, kHalf> angles{};
  for (std::size_t j = 0; j < angles.size(); ++j) {
    angles[j] = pair_angles[static_cast<std::size_t>(pairs[j])];
  }
  const Head run = rotated(
      reordered, angles, [](std::size_t j) { return j; }, [](std::size_t j) { return j + kHalf; });
  for (std::size_t i = 0; i < run.size(); ++i) {
    EXPECT_DOUBLE_EQ(run[i], stored[static_cast<std::size_t>(order[i])]);
  }
}

}  // namespace
}  // namespace fovea::common
