// Counting a forward without running it.
#include "graph/capture/forward_cost.h"

#include <gtest/gtest.h>

#include "graph/harness.h"

namespace fovea {
namespace {

using namespace test;  // NOLINT: the harness is written for these tests

TEST(ForwardCost, SizesTheArenaAndRunsNothing) {
  const MockModel model;
  const auto kernels = make_cpu_kernels(CpuIsa::kPortable, 1);
  const auto device = make_cpu_device(1, *kernels);
  const ForwardCost cost =
      measure_forward(model, *device, 0, {.tokens = 16, .items = 4, .seqs = 4});
  // 64 projected rows of 32 floats, 64 lengths
  EXPECT_EQ(cost.arena_bytes, 64u * 32u * 4u + 256u);
  EXPECT_EQ(model.forwards_run(), 0);
  EXPECT_EQ(device->allocated_bytes(), 0u);
}

TEST(ForwardCost, GrowsWithTheCapacity) {
  const MockModel model;
  const auto kernels = make_cpu_kernels(CpuIsa::kPortable, 1);
  const auto device = make_cpu_device(1, *kernels);
  EXPECT_GT(measure_forward(model, *device, 0, {.tokens = 32, .items = 4, .seqs = 4}).arena_bytes,
            measure_forward(model, *device, 0, {.tokens = 16, .items = 4, .seqs = 4}).arena_bytes);
}

}  // namespace
}  // namespace fovea
