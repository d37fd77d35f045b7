// Memory of the caller: what of it holds rows, and what overlaps.
#include "rows/row_target.h"

#include <gtest/gtest.h>

#include <array>
#include <limits>

#include "support/expect_error.h"

namespace fovea {
namespace {

constexpr std::int64_t kWidth = 4;

class RowBlocks : public ::testing::Test {
 protected:
  [[nodiscard]] RowBlock block(std::size_t offset, std::int64_t rows, std::int64_t stride = 0) {
    return {.data = memory_.data() + offset, .row_stride_bytes = stride, .rows = rows};
  }
  static void refused(const RowBlock& block, const std::string& part) {
    test::expect_error(ErrorCode::kInvalidArgument, "destination 3: " + part,
                       [&] { check_block(block, kWidth, "destination 3"); });
  }
  /// Whether two blocks of floats may be written at the same time.
  [[nodiscard]] static bool apart(const RowBlock& a, const RowBlock& b, bool b_is_written = true) {
    try {
      check_apart(std::array{UsedBlock{&a, "a"}, UsedBlock{&b, "b", b_is_written}}, kWidth);
      return true;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
      return false;
    }
  }

  alignas(64) std::array<std::byte, 4096> memory_{};
};

TEST_F(RowBlocks, NeedMemoryUnlessTheyHaveNoRows) {
  check_block({}, kWidth, "destination 3");
  refused({.rows = 2}, "no memory for 2 rows");
  refused({.data = memory_.data(), .rows = -1}, "-1 rows");
}

TEST_F(RowBlocks, AreAlignedToTheirElements) {
  check_block(block(4, 2, 20), kWidth, "destination 3");
  refused(block(2, 2), "data and stride must be multiples of the 4 bytes of float32");
  refused(block(0, 2, 18),
          "data and stride must be multiples of the 4 bytes of float32, got a "
          "stride of 18");
  RowBlock narrow = block(2, 2, 10);
  narrow.dtype = RowDType::kBFloat16;
  check_block(narrow, kWidth, "destination 3");
  narrow.data = memory_.data() + 1;
  refused(narrow, "data and stride must be multiples of the 2 bytes of bfloat16");
}

TEST_F(RowBlocks, HaveRowsThatDoNotOverlap) {
  refused(block(0, 2, 12), "rows of 16 bytes overlap if they are 12 bytes apart");
  refused(block(0, 2, -16), "rows of 16 bytes overlap if they are -16 bytes apart");
}

TEST_F(RowBlocks, HaveDtypesAndDevicesThatExist) {
  RowBlock other = block(0, 1);
  other.dtype = static_cast<RowDType>(7);
  refused(other, "there is no dtype of number 7");
  other = block(0, 1);
  other.device = -2;
  refused(other, "expected a GPU or -1 for the host, got device -2");
}

TEST_F(RowBlocks, FitIntoMemory) {
  refused(block(0, std::numeric_limits<std::int64_t>::max()),
          "9223372036854775807 rows are more than memory has");
  refused(block(0, 3, std::numeric_limits<std::int64_t>::max() - 3),
          "3 rows are more than memory has");
}

TEST_F(RowBlocks, AreApartOrOverlap) {
  EXPECT_TRUE(apart(block(0, 2), block(32, 2)));
  EXPECT_FALSE(apart(block(0, 2), block(28, 2)));
  EXPECT_FALSE(apart(block(28, 2), block(0, 2)));
  EXPECT_FALSE(apart(block(0, 2), block(0, 2)));
  EXPECT_TRUE(apart(block(0, 0), block(0, 2))) << "no rows overlap nothing";
}

TEST_F(RowBlocks, OfOneStrideMayLieSideBySide) {
  EXPECT_TRUE(apart(block(0, 3, 32), block(16, 3, 32)));
  EXPECT_TRUE(apart(block(0, 3, 32), block(16 + 32, 3, 32)));
  EXPECT_FALSE(apart(block(0, 3, 32), block(12, 3, 32)));
  EXPECT_FALSE(apart(block(0, 3, 32), block(20, 3, 32)));
  EXPECT_FALSE(apart(block(0, 3, 32), block(16, 3, 48))) << "not looked into";
}

TEST_F(RowBlocks, OnTwoDevicesDoNotOverlap) {
  RowBlock there = block(0, 2);
  there.device = 1;
  EXPECT_TRUE(apart(block(0, 2), there));
}

TEST_F(RowBlocks, ThatAreReadOverlapOnlyWhatIsWritten) {
  const RowBlock a = block(0, 2);
  EXPECT_FALSE(apart(a, a, false));
  check_apart(std::array{UsedBlock{&a, "a", false}, UsedBlock{&a, "b", false}}, kWidth);
}

TEST_F(RowBlocks, AreComparedWithAllThatTheyReach) {
  const RowBlock wide = block(0, 8, 256);
  const RowBlock between = block(16, 8, 256);
  const RowBlock inside = block(256, 1, 256);
  test::expect_error(ErrorCode::kInvalidArgument, "inside overlaps wide", [&] {
    check_apart(std::array{UsedBlock{&inside, "inside"}, UsedBlock{&between, "between"},
                           UsedBlock{&wide, "wide"}},
                kWidth);
  });
}

}  // namespace
}  // namespace fovea
