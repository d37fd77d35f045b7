// Memory of rows: small blocks of the heap, large ones of the system.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <limits>
#include <new>
#include <utility>

#include "fovea/embedding.h"

namespace fovea {
namespace {

constexpr std::size_t kMiB = std::size_t{1} << 20;

/// Address space of this process, in pages.
std::size_t mapped_pages() {
  std::size_t pages = 0;
  std::ifstream("/proc/self/statm") >> pages;
  return pages;
}

class RowMemory : public ::testing::TestWithParam<std::size_t> {};

TEST_P(RowMemory, HoldsEveryByteItWasAskedFor) {
  RowBytes rows(GetParam());
  std::memset(rows.data(), 7, rows.size());
  EXPECT_EQ(rows.data()[rows.size() - 1], std::byte{7});
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(rows.data()) % 64, 0u);
}

TEST_P(RowMemory, KeepsItsContentsWhenItGrows) {
  RowBytes rows(GetParam());
  std::ranges::fill(rows, std::byte{5});
  const RowBytes before = rows;
  rows.resize(2 * GetParam() + 1);
  rows.resize(GetParam());
  EXPECT_EQ(rows, before);
}

TEST_P(RowMemory, IsCopiedAndMoved) {
  RowBytes rows(GetParam());
  std::ranges::fill(rows, std::byte{9});
  RowBytes copy = rows;
  EXPECT_NE(copy.data(), rows.data());
  const std::byte* const memory = rows.data();
  const RowBytes moved = std::move(rows);
  EXPECT_EQ(moved.data(), memory);
  EXPECT_EQ(moved, copy);
  copy = RowBytes();
  EXPECT_TRUE(copy.empty());
}

INSTANTIATE_TEST_SUITE_P(Bytes, RowMemory,
                         ::testing::Values(1, 4096, 2 * kMiB - 1, 2 * kMiB, 2 * kMiB + 1,
                                           3 * kMiB - 1, 3 * kMiB, 4 * kMiB, 9 * kMiB + 5));

TEST(LargeRowMemory, BeginsAtAHugePage) {
  const RowBytes rows(5 * kMiB);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(rows.data()) % (2 * kMiB), 0u);
}

TEST(LargeRowMemory, GoesBackToTheSystem) {
  const std::size_t before = mapped_pages();
  for (int round = 0; round < 10; ++round) RowBytes(64 * kMiB + 1).data()[64 * kMiB] = std::byte{1};
  EXPECT_LT(mapped_pages(), before + 32 * kMiB / 4096);
}

TEST(LargeRowMemory, ThatIsNotThereIsABadAlloc) {
  EXPECT_THROW((void)RowBytes(std::size_t{1} << 62), std::bad_alloc);
  EXPECT_THROW((void)RowBytes(std::numeric_limits<std::size_t>::max()), std::bad_alloc);
}

}  // namespace
}  // namespace fovea
