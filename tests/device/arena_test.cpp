// The bump allocator: addresses, alignment, scopes, exhaustion, measuring.
#include "fovea/tower/device/arena.h"

#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <vector>

#include "support/expect_error.h"
#include "support/next_free.h"

namespace fovea::test {
namespace {

class ArenaTest : public ::testing::Test {
 protected:
  static constexpr std::size_t kBytes = 4096;
  alignas(Arena::kAlignment) std::array<std::byte, kBytes> memory_{};
  Arena arena_{memory_.data(), memory_.size()};
};

TEST_F(ArenaTest, HandsOutAlignedNeighbours) {
  const TensorView a = arena_.tensor(DType::kU8, {1});
  const TensorView b = arena_.tensor(DType::kF32, {3, 5});
  const TensorView c = arena_.tensor(DType::kI32, {64});
  EXPECT_EQ(a.data, memory_.data());
  EXPECT_EQ(b.data, memory_.data() + 256);
  EXPECT_EQ(c.data, memory_.data() + 512);
  EXPECT_EQ(b.shape, (Shape{3, 5}));
  EXPECT_EQ(b.dtype, DType::kF32);
  EXPECT_EQ(next_free(arena_), memory_.data() + 768);
}

TEST_F(ArenaTest, TheSameCallsGiveTheSameAddresses) {
  const auto take = [&] {
    const Arena::Scope scope(arena_);
    const TensorView a = arena_.tensor(DType::kF32, {100});
    const TensorView b = arena_.tensor(DType::kF32, {7});
    return std::array{a.data, b.data};
  };
  EXPECT_EQ(take(), take());
}

TEST_F(ArenaTest, AScopeGivesBackWhatWasTakenInIt) {
  (void)arena_.tensor(DType::kF32, {10});
  const std::byte* const before = next_free(arena_);
  {
    const Arena::Scope outer(arena_);
    (void)arena_.tensor(DType::kF32, {10});
    {
      const Arena::Scope inner(arena_);
      (void)arena_.tensor(DType::kF32, {500});
    }
    EXPECT_EQ(next_free(arena_), before + 256);
  }
  EXPECT_EQ(next_free(arena_), before);
}

TEST_F(ArenaTest, RemembersTheMostEverInUse) {
  {
    const Arena::Scope scope(arena_);
    (void)arena_.tensor(DType::kF32, {500});
  }
  (void)arena_.tensor(DType::kF32, {10});
  EXPECT_EQ(arena_.high_water(), 2048u);
}

TEST_F(ArenaTest, RefusesATensorWhoseBytesWouldWrapAround) {
  constexpr std::int64_t kSide = std::int64_t{1} << 31;  // 2^64 bytes of float32
  expect_error(ErrorCode::kInvalidArgument, "more bytes than 63 bits hold", [&] {
    (void)arena_.tensor(DType::kF32, {kSide, kSide});
  });
}

TEST_F(ArenaTest, ATensorWithoutElementsTakesNothing) {
  EXPECT_EQ(arena_.tensor(DType::kF32, {0, 100}).bytes(), 0u);
  EXPECT_EQ(next_free(arena_), memory_.data());
}

TEST_F(ArenaTest, CanBeFilledToTheLastByte) {
  EXPECT_NO_THROW((void)arena_.tensor(DType::kU8, {kBytes}));
  expect_error(ErrorCode::kInternal, "arena of 4096 bytes has 0 left, 256 are needed for [1]",
               [&] { (void)arena_.tensor(DType::kU8, {1}); });
}

TEST_F(ArenaTest, SaysWhatDoesNotFitAndStaysUsable) {
  (void)arena_.tensor(DType::kU8, {1});
  expect_error(ErrorCode::kInternal,
               "arena of 4096 bytes has 3840 left, 4096 are needed for [1000]",
               [&] { (void)arena_.tensor(DType::kF32, {1000}); });
  EXPECT_EQ(next_free(arena_), memory_.data() + 256);
  EXPECT_NO_THROW((void)arena_.tensor(DType::kU8, {3840}));
}

TEST(MeasuringArena, CountsWithoutMemory) {
  Arena arena = Arena::measuring();
  {
    const Arena::Scope scope(arena);
    const TensorView huge = arena.tensor(DType::kF32, {std::int64_t{1} << 40});
    EXPECT_TRUE(huge);  // an op must take it for present
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(huge.data) % Arena::kAlignment, 0u);
  }
  const std::byte* const begin = arena.tensor(DType::kU8, {1}).data;
  EXPECT_EQ(arena.high_water(), std::size_t{1} << 42);
  EXPECT_EQ(next_free(arena), begin + 256);
}

TEST(MeasuringArena, AgreesWithARealOne) {
  std::vector<std::byte> memory(1 << 16);
  Arena real(memory.data(), memory.size());
  Arena measuring = Arena::measuring();
  for (Arena* arena : {&real, &measuring}) {
    (void)arena->tensor(DType::kBF16, {3, 7});
    const Arena::Scope scope(*arena);
    (void)arena->tensor(DType::kF32, {1000});
  }
  EXPECT_EQ(real.high_water(), measuring.high_water());
}

}  // namespace
}  // namespace fovea::test
