// Slots in one piece of memory.
#include "rows/row_arena.h"

#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "device/cpu/cpu_device.h"
#include "graph/deferred_device.h"
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

TEST_F(RowArenaTest, RowsAreThereWhenAllWritersHavePassed) {
  test::DeferredDevice gpu(*kernels_, test::Schedule::kLast);
  RowMarks marks(gpu);
  const auto slot = arena_.allocate(2 * kUnit);
  const std::vector<std::byte> rows(kUnit, std::byte{7});
  std::vector<std::unique_ptr<Stream>> writers;
  for (std::size_t i = 0; i < 2; ++i) {
    Stream& writer = *writers.emplace_back(gpu.create_copy_stream());
    slot->begin_write(writer);
    writer.copy(slot->data() + i * kUnit, rows.data(), kUnit);
    slot->end_write(marks.after(writer));
    EXPECT_FALSE(slot->has_rows()) << "also where those of the first are there";
    if (i == 0) {
      slot->wait_for_rows();
      EXPECT_TRUE(slot->has_rows());
    }
  }
  std::vector<std::byte> out(2 * kUnit);
  const std::unique_ptr<Stream> reader = gpu.create_copy_stream();
  slot->begin_read(*reader);
  reader->copy(out.data(), slot->data(), out.size());
  reader->synchronize();
  EXPECT_EQ(out, std::vector<std::byte>(2 * kUnit, std::byte{7}));
  EXPECT_TRUE(slot->has_rows());
}

}  // namespace
}  // namespace fovea
