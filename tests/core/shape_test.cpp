#include "fovea/tower/core/shape.h"

#include <gtest/gtest.h>

#include <limits>
#include <sstream>
#include <vector>

#include "support/expect_error.h"

namespace fovea {
namespace {

constexpr std::int64_t kMax = std::numeric_limits<std::int64_t>::max();

TEST(CheckedArithmetic, GivesTheExactResultUpTo63Bits) {
  EXPECT_EQ(checked_mul(0, kMax), 0);
  EXPECT_EQ(checked_mul(1, kMax), kMax);
  EXPECT_EQ(checked_mul(std::int64_t{1} << 31, std::int64_t{1} << 31), std::int64_t{1} << 62);
  EXPECT_EQ(checked_add(kMax, 0), kMax);
  EXPECT_EQ(checked_add(kMax - 1, 1), kMax);
}

TEST(CheckedArithmetic, GivesNothingBeyond63Bits) {
  EXPECT_EQ(checked_mul(std::int64_t{1} << 32, std::int64_t{1} << 31), std::nullopt);
  EXPECT_EQ(checked_mul(kMax, 2), std::nullopt);
  EXPECT_EQ(checked_add(kMax, 1), std::nullopt);
}

TEST(CheckedArithmetic, GivesNothingForNegativeSizes) {
  EXPECT_EQ(checked_mul(-1, 1), std::nullopt);
  EXPECT_EQ(checked_mul(1, -1), std::nullopt);
  EXPECT_EQ(checked_add(-1, 1), std::nullopt);
  EXPECT_EQ(checked_add(1, -1), std::nullopt);
}

TEST(Shape, OfRankZeroIsAScalar) {
  const Shape shape;
  EXPECT_EQ(shape.rank(), 0);
  EXPECT_EQ(shape.elements(), 1);
}

TEST(Shape, CountsElements) {
  EXPECT_EQ((Shape{2, 3, 4}).elements(), 24);
  EXPECT_EQ((Shape{2, 0, 4}).elements(), 0);
}

TEST(Shape, ComparesSizesAndRank) {
  EXPECT_EQ((Shape{2, 3}), (Shape{2, 3}));
  EXPECT_NE((Shape{2, 3}), (Shape{3, 2}));
  EXPECT_NE((Shape{2}), (Shape{2, 0}));
  EXPECT_NE(Shape{}, (Shape{0}));
}

TEST(Shape, PrintsItsSizes) {
  std::ostringstream out;
  out << Shape{} << Shape{7} << Shape{2, 3};
  EXPECT_EQ(out.str(), "[][7][2, 3]");
}

TEST(Shape, TakesTheHighestRank) {
  const std::vector<std::int64_t> sizes(kMaxRank, 1);
  EXPECT_EQ(Shape(sizes).rank(), kMaxRank);
}

TEST(Shape, RefusesMoreThanTheHighestRank) {
  const std::vector<std::int64_t> sizes(kMaxRank + 1, 1);
  test::expect_error(ErrorCode::kInvalidArgument, "rank 9, at most 8", [&] { (void)Shape(sizes); });
}

TEST(Shape, RefusesANegativeSize) {
  test::expect_error(ErrorCode::kInvalidArgument, "negative size -1", [] { (void)Shape{2, -1}; });
}

TEST(Shape, RefusesToCountMoreElementsThan63BitsHold) {
  const Shape shape{std::int64_t{1} << 40, std::int64_t{1} << 40};
  test::expect_error(ErrorCode::kInvalidArgument, "[1099511627776, 1099511627776]",
                     [&] { (void)shape.elements(); });
}

}  // namespace
}  // namespace fovea
