// Memory in which ranks gather rows: kept from call to call, not for ever.
#include "rows/gather_memory.h"

#include <gtest/gtest.h>

#include <array>

#include "graph/deferred_device.h"
#include "ops/cpu/cpu_kernels.h"

namespace fovea {
namespace {

class GatherMemoryTest : public ::testing::Test {
 protected:
  std::unique_ptr<Kernels> kernels_ = make_cpu_kernels(CpuIsa::kPortable, 1);
  test::DeferredDevice device_{*kernels_, test::Schedule::kLast};
  std::unique_ptr<Stream> stream_ = device_.create_copy_stream();
  GatherMemory memory_;
};

TEST_F(GatherMemoryTest, IsKeptFromCallToCall) {
  const std::byte* const first = memory_.reserve(device_, 1000, *stream_);
  EXPECT_EQ(memory_.reserve(device_, 300, *stream_), first);
  EXPECT_EQ(memory_.reserve(device_, 1000, *stream_), first);
}

TEST_F(GatherMemoryTest, GrowsToTheLargestCall) {
  (void)memory_.reserve(device_, 1000, *stream_);
  (void)memory_.reserve(device_, 5000, *stream_);
  EXPECT_GE(device_.allocated_bytes(), 5000U);
}

TEST_F(GatherMemoryTest, ShrinksWhenManyCallsNeedLess) {
  (void)memory_.reserve(device_, 1'000'000, *stream_);
  for (std::size_t call = 0; call < RecentNeed::kRuns; ++call) {
    (void)memory_.reserve(device_, 1000, *stream_);
  }
  EXPECT_LT(device_.allocated_bytes(), 10'000U);
}

TEST_F(GatherMemoryTest, IsUsedByOneStreamAfterTheOther) {
  const auto other = device_.create_copy_stream();
  const std::array<std::byte, 2> values{std::byte{1}, std::byte{2}};
  (void)memory_.reserve(device_, 100, *stream_);
  stream_->copy(memory_.reserve(device_, 100, *stream_), &values[0], 1);
  memory_.add_uses(*stream_);
  const std::int64_t before = device_.host_waits();
  std::byte* const bytes = memory_.reserve(device_, 100, *other);
  EXPECT_EQ(device_.host_waits(), before) << "the device waits, not the host";
  other->copy(bytes, &values[1], 1);
  other->synchronize();
  stream_->synchronize();
  EXPECT_EQ(*bytes, values[1]);
}

TEST_F(GatherMemoryTest, IsNotReplacedWhileItIsUsed) {
  const std::byte value{1};
  std::byte* const bytes = memory_.reserve(device_, 100, *stream_);
  stream_->copy(bytes, &value, 1);
  memory_.add_uses(*stream_);
  (void)memory_.reserve(device_, 1000, *stream_);
  EXPECT_TRUE(stream_->is_idle());
}

}  // namespace
}  // namespace fovea
