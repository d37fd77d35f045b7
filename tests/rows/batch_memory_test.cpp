// Memory for the rows of batches: kept from one to the next, not for ever.
#include "rows/batch_memory.h"

#include <gtest/gtest.h>

#include <array>

#include "graph/deferred_device.h"
#include "ops/cpu/cpu_kernels.h"

namespace fovea {
namespace {

class BatchMemoryTest : public ::testing::Test {
 protected:
  /// Of a batch that `stream` writes and reads.
  std::byte* reserve(std::size_t bytes, Stream& stream) {
    std::byte* const data = memory_.reserve(device_, bytes, /*is_ordered=*/true);
    stream.wait_for(memory_.readers(device_));
    return data;
  }

  std::unique_ptr<Kernels> kernels_ = make_cpu_kernels(CpuIsa::kPortable, 1);
  test::DeferredDevice device_{*kernels_, test::Schedule::kLast};
  std::unique_ptr<Stream> stream_ = device_.create_copy_stream();
  BatchMemory memory_;
};

TEST_F(BatchMemoryTest, IsKeptFromBatchToBatch) {
  const std::byte* const first = reserve(1000, *stream_);
  EXPECT_EQ(reserve(300, *stream_), first);
  EXPECT_EQ(reserve(1000, *stream_), first);
}

TEST_F(BatchMemoryTest, GrowsToTheLargestBatch) {
  (void)reserve(1000, *stream_);
  (void)reserve(5000, *stream_);
  EXPECT_GE(device_.allocated_bytes(), 5000U);
}

TEST_F(BatchMemoryTest, ShrinksWhenManyBatchesNeedLess) {
  (void)reserve(1'000'000, *stream_);
  for (std::size_t call = 0; call < RecentNeed::kRuns; ++call) {
    (void)reserve(1000, *stream_);
  }
  EXPECT_LT(device_.allocated_bytes(), 10'000U);
}

TEST_F(BatchMemoryTest, IsUsedByOneStreamAfterTheOther) {
  const auto other = device_.create_copy_stream();
  const std::array<std::byte, 2> values{std::byte{1}, std::byte{2}};
  (void)reserve(100, *stream_);
  stream_->copy(reserve(100, *stream_), &values[0], 1);
  memory_.readers(device_).wait_for(*stream_);
  const std::int64_t before = device_.host_waits();
  std::byte* const bytes = reserve(100, *other);
  EXPECT_EQ(device_.host_waits(), before) << "the device waits, not the host";
  other->copy(bytes, &values[1], 1);
  other->synchronize();
  stream_->synchronize();
  EXPECT_EQ(*bytes, values[1]);
}

TEST_F(BatchMemoryTest, IsWaitedForByWritersThatAreNotOrdered) {
  const std::byte value{1};
  stream_->copy(reserve(100, *stream_), &value, 1);
  memory_.readers(device_).wait_for(*stream_);
  (void)memory_.reserve(device_, 100, /*is_ordered=*/false);
  EXPECT_TRUE(stream_->is_idle());
}

TEST_F(BatchMemoryTest, IsGivenUpForAnotherDevice) {
  test::DeferredDevice other(*kernels_, test::Schedule::kLast);
  BatchMemory memory;
  (void)memory.reserve(device_, 1000, /*is_ordered=*/true);
  (void)memory.reserve(other, 500, /*is_ordered=*/true);
  EXPECT_EQ(device_.allocated_bytes(), 0U);
  EXPECT_GE(other.allocated_bytes(), 500U);
}

TEST_F(BatchMemoryTest, IsNotReplacedWhileItIsUsed) {
  const std::byte value{1};
  std::byte* const bytes = reserve(100, *stream_);
  stream_->copy(bytes, &value, 1);
  memory_.readers(device_).wait_for(*stream_);
  (void)memory_.reserve(device_, 1000, /*is_ordered=*/true);
  EXPECT_TRUE(stream_->is_idle());
}

}  // namespace
}  // namespace fovea
