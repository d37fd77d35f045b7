// Memory that the runs of a lane share.
#include "graph/run_memory.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <memory>

#include "device/cpu/cpu_device.h"
#include "graph/deferred_device.h"
#include "ops/cpu/cpu_kernels.h"
#include "support/expect_error.h"

namespace fovea {
namespace {

constexpr RunMemory::Need kSmallNeed{.arena = 1024, .input = 256, .output = 512};
constexpr RunMemory::Need kLargeNeed{.arena = 4096, .input = 512, .output = 1024};

class RunMemoryTest : public ::testing::Test {
 protected:
  std::unique_ptr<Kernels> kernels_ = make_cpu_kernels(CpuIsa::kPortable, 1);
  std::unique_ptr<Device> device_ = make_cpu_device(1, *kernels_);
  Lane lane_{*device_};
  RunMemory memory_{lane_, 2};
};

TEST_F(RunMemoryTest, HoldsNothingBeforeItIsAskedTo) {
  EXPECT_EQ(memory_.device_bytes(), 0U);
  EXPECT_TRUE(memory_.holds(0, {}));
  EXPECT_FALSE(memory_.holds(0, kSmallNeed));
  EXPECT_EQ(memory_.addresses(0), RunMemory::Addresses{});
}

TEST_F(RunMemoryTest, AReservedNeedHoldsAndStaysWhereItIs) {
  memory_.reserve(0, kLargeNeed);
  const RunMemory::Addresses before = memory_.addresses(0);
  EXPECT_TRUE(memory_.holds(0, kLargeNeed));
  EXPECT_TRUE(memory_.holds(0, kSmallNeed));
  memory_.reserve(0, kSmallNeed);
  memory_.reserve(0, kLargeNeed);
  EXPECT_EQ(memory_.addresses(0), before);
  EXPECT_GE(memory_.device_bytes(), kLargeNeed.total());
}

TEST_F(RunMemoryTest, PathsShareTheArenaAlone) {
  memory_.reserve(0, kSmallNeed);
  EXPECT_FALSE(memory_.holds(1, kSmallNeed));
  memory_.reserve(1, kSmallNeed);
  const RunMemory::Addresses first = memory_.addresses(0);
  const RunMemory::Addresses second = memory_.addresses(1);
  EXPECT_EQ(first.arena, second.arena);
  EXPECT_NE(first.input, second.input);
  EXPECT_NE(first.output, second.output);
}

TEST_F(RunMemoryTest, CountsWhatItHolds) {
  memory_.reserve(0, kSmallNeed);
  memory_.reserve(1, kLargeNeed);
  EXPECT_EQ(memory_.arena_bytes(), kLargeNeed.arena);
  EXPECT_EQ(memory_.input_bytes(), kSmallNeed.input + kLargeNeed.input);
  EXPECT_EQ(memory_.output_bytes(), kSmallNeed.output + kLargeNeed.output);
  EXPECT_EQ(memory_.device_bytes(),
            memory_.arena_bytes() + memory_.input_bytes() + memory_.output_bytes());
  EXPECT_EQ(memory_.host_bytes(), 0U) << "device memory is host memory";
}

TEST_F(RunMemoryTest, ClearedMemoryIsGivenBackAndMayBeReservedAgain) {
  memory_.reserve(0, kSmallNeed);
  memory_.clear();
  EXPECT_EQ(memory_.device_bytes(), 0U);
  EXPECT_FALSE(memory_.holds(0, kSmallNeed));
  memory_.reserve(0, kSmallNeed);
  EXPECT_TRUE(memory_.holds(0, kSmallNeed));
}

TEST_F(RunMemoryTest, IsFilledWithOnesEverywhere) {
  memory_.reserve(0, kSmallNeed);
  memory_.fill_with_nan();
  lane_.synchronize();
  const RunMemory::Addresses at = memory_.addresses(0);
  const auto all_ones = [](const std::byte* from, std::size_t bytes) {
    return std::all_of(from, from + bytes, [](std::byte byte) { return byte == std::byte{0xFF}; });
  };
  EXPECT_TRUE(all_ones(at.arena, kSmallNeed.arena));
  EXPECT_TRUE(all_ones(at.input, kSmallNeed.input));
  EXPECT_TRUE(all_ones(at.output, kSmallNeed.output));
}

TEST_F(RunMemoryTest, WhatCouldNotGrowIsEmptyAndMayBeReservedAgain) {
  test::DeferredDevice device(*kernels_, test::Schedule::kLast);
  Lane lane(device);
  RunMemory memory(lane, 1);
  memory.reserve(0, kSmallNeed);
  device.set_limit(device.allocated_bytes());
  test::expect_error(ErrorCode::kOutOfMemory, "", [&] { memory.reserve(0, kLargeNeed); });
  EXPECT_FALSE(memory.holds(0, kLargeNeed));
  device.set_limit(std::numeric_limits<std::size_t>::max());
  memory.reserve(0, kLargeNeed);
  EXPECT_TRUE(memory.holds(0, kLargeNeed));
  EXPECT_GT(memory.host_bytes(), 0U) << "inputs are filled in pinned memory";
}

}  // namespace
}  // namespace fovea
