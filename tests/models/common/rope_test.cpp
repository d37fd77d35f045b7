// Frequencies of rotary positions. Angles of positions: grid/layers_test.cpp.
#include "models/common/rope.h"

#include <gtest/gtest.h>

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
  ASSERT_EQ(values.size(), 4u);
  EXPECT_EQ(values[0], 1.0f);
  EXPECT_NEAR(values[1], 1e-1, 1e-8);
  EXPECT_NEAR(values[2], 1e-2, 1e-9);
  EXPECT_NEAR(values[3], 1e-3, 1e-10);
}

TEST(InverseFrequencies, FollowThetaAndTheHeadDim) {
  const std::vector<float> values = frequencies(72, 500);
  ASSERT_EQ(values.size(), 18u);
  EXPECT_NEAR(values[9], 1 / std::sqrt(500.0), 1e-8);
}

}  // namespace
}  // namespace fovea::common
