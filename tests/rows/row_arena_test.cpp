// Slots in one piece of memory.
#include "rows/row_arena.h"

#include <gtest/gtest.h>

#include "device/cpu/cpu_device.h"
#include "ops/cpu/cpu_kernels.h"

namespace fovea {
namespace {

constexpr std::size_t kUnit = RowArena::kAlignment;

class RowArenaTest : public ::testing::Test {
 protected:
  std::unique_ptr<Kernels> kernels_ = make_cpu_kernels(CpuIsa::kPortable, 1);
  std::unique_ptr<Device> device_ = make_cpu_device(1, *kernels_);
  RowArena arena_{device_.get(), device_->allocate(10 * kUnit)};
};

TEST_F(RowArenaTest, HandsOutItsMemoryAndNoMore) {
  const auto first = arena_.allocate(4 * kUnit - 1);
  const auto second = arena_.allocate(6 * kUnit);
  ASSERT_TRUE(first && second);
  EXPECT_EQ(first->bytes(), 4 * kUnit - 1);
  EXPECT_EQ(second->data() - first->data(), static_cast<std::ptrdiff_t>(4 * kUnit));
  EXPECT_EQ(arena_.free_bytes(), 0);
  EXPECT_EQ(arena_.allocate(1), nullptr);
}

TEST_F(RowArenaTest, JoinsHolesThatLieSideBySide) {
  auto first = arena_.allocate(3 * kUnit);
  auto second = arena_.allocate(3 * kUnit);
  auto third = arena_.allocate(4 * kUnit);
  first.reset();
  third.reset();
  EXPECT_EQ(arena_.allocate(5 * kUnit), nullptr) << "there is no hole of this size";
  second.reset();
  EXPECT_NE(arena_.allocate(10 * kUnit), nullptr);
}

TEST_F(RowArenaTest, TakesTheSmallestHoleThatIsLargeEnough) {
  auto large = arena_.allocate(5 * kUnit);
  const auto between = arena_.allocate(kUnit);
  auto small = arena_.allocate(2 * kUnit);
  const auto last = arena_.allocate(2 * kUnit);
  const std::byte* const where = small->data();
  large.reset();
  small.reset();
  EXPECT_EQ(arena_.allocate(2 * kUnit)->data(), where);
}

}  // namespace
}  // namespace fovea
