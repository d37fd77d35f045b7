// Position tables at other sizes, against weights that the reference was seen to use.
#include "models/common/position_table.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "support/expect_error.h"

namespace fovea::common {
namespace {

/// Weights with which position `i` of `to` takes the positions of `from`, along one axis: tables
/// that are constant along the other axis show them.
std::vector<float> bicubic_weights(std::int64_t from, std::int64_t to, std::int64_t i) {
  std::vector<float> weights;
  for (std::int64_t tap = 0; tap < from; ++tap) {
    std::vector<float> table(static_cast<std::size_t>(from * from), 0.0f);
    for (std::int64_t y = 0; y < from; ++y) table[static_cast<std::size_t>(y * from + tap)] = 1.0f;
    weights.push_back(resize_position_table(table, from, to, 1)[static_cast<std::size_t>(i)]);
  }
  return weights;
}

/// `taps` from index `first` on, zeros elsewhere.
void expect_taps(const std::vector<float>& weights, std::size_t first,
                 const std::vector<double>& taps) {
  for (std::size_t k = 0; k < weights.size(); ++k) {
    const bool inside = k >= first && k < first + taps.size();
    // The weights are given with six decimals.
    EXPECT_NEAR(weights[k], inside ? taps[k - first] : 0.0, 6e-7) << "tap " << k;
  }
}

TEST(PositionTable, ShrinksWithTheWeightsOfTheReference) {
  expect_taps(bicubic_weights(64, 40, 0), 0, {0.611381, 0.429092, -0.018213, -0.022260});
  expect_taps(bicubic_weights(64, 40, 1), 0,
              {-0.037858, 0.291144, 0.605959, 0.187052, -0.045176, -0.001120});
  expect_taps(bicubic_weights(64, 40, 2), 1,
              {-0.034223, 0.024600, 0.509623, 0.509623, 0.024600, -0.034223});
  // CLIP's table: the same ratio.
  expect_taps(bicubic_weights(16, 10, 0), 0, {0.611381, 0.429092, -0.018213, -0.022260});
}

TEST(PositionTable, ShrinksTheTableOfStep3WithTheWeightsOfTheReference) {
  expect_taps(bicubic_weights(52, 36, 0), 0, {0.6834319, 0.3678501, -0.0493097, -0.0019724});
  expect_taps(bicubic_weights(52, 36, 1), 0,
              {-0.0380025, 0.4243090, 0.6108668, 0.0342337, -0.0314070});
}

TEST(PositionTable, GrowsWithTheWeightsOfTheReference) {
  expect_taps(bicubic_weights(64, 80, 0), 0, {1.043269, -0.043269});
  expect_taps(bicubic_weights(64, 80, 1), 0, {0.280659, 0.790596, -0.071255});
  expect_taps(bicubic_weights(16, 20, 2), 0, {-0.0625, 0.5625, 0.5625, -0.0625});
}

TEST(PositionTable, TheFarEndMirrorsTheNearOne) {
  std::vector<float> near = bicubic_weights(64, 40, 1);
  const std::vector<float> far = bicubic_weights(64, 40, 38);
  std::reverse(near.begin(), near.end());
  for (std::size_t k = 0; k < near.size(); ++k) EXPECT_NEAR(far[k], near[k], 1e-7);
}

TEST(PositionTable, RowsAndColumnsAreResizedAlike) {
  // A table of y has the weights of the first axis, of x those of the second; channels stay apart.
  constexpr std::int64_t kFrom = 16;
  constexpr std::int64_t kTo = 10;
  std::vector<float> table;
  for (std::int64_t y = 0; y < kFrom; ++y) {
    for (std::int64_t x = 0; x < kFrom; ++x) {
      table.push_back(static_cast<float>(y * y));
      table.push_back(static_cast<float>(x * x));
    }
  }
  const std::vector<float> out = resize_position_table(table, kFrom, kTo, 2);
  ASSERT_EQ(out.size(), 2u * kTo * kTo);
  const auto at = [&](std::int64_t y, std::int64_t x, std::int64_t c) {
    return out[static_cast<std::size_t>((y * kTo + x) * 2 + c)];
  };
  for (std::int64_t y = 0; y < kTo; ++y) {
    for (std::int64_t x = 0; x < kTo; ++x) {
      EXPECT_NEAR(at(y, x, 0), at(x, y, 1), 1e-4);
      EXPECT_NEAR(at(y, x, 0), at(y, 0, 0), 1e-4);
    }
  }
  EXPECT_GT(at(5, 0, 0), at(4, 0, 0));
}

TEST(PositionTable, EqualSidesCopy) {
  std::vector<float> table(3 * 3 * 2);
  std::iota(table.begin(), table.end(), 0.5f);
  EXPECT_EQ(resize_position_table(table, 3, 3, 2), table);
}

TEST(PositionTable, RefusesTablesOfAnotherSize) {
  test::expect_error(ErrorCode::kInternal, "position table has 8 values, expected 3x3x1",
                     [] { (void)resize_position_table(std::vector<float>(8), 3, 2, 1); });
}

/// Table row i, as a fraction of rows of the stored table: of a table that counts its rows.
std::vector<float> linear_places(std::int64_t from, std::int64_t to) {
  std::vector<float> table(static_cast<std::size_t>(from));
  std::iota(table.begin(), table.end(), 0.0f);
  return resize_relative_table(table, from, to, 1);
}

TEST(RelativeTable, ReadsThePlacesOfTheReference) {
  const std::vector<float> shrunk = linear_places(127, 79);
  ASSERT_EQ(shrunk.size(), 79u);
  EXPECT_NEAR(shrunk[0], 0.303797, 1e-6);
  EXPECT_NEAR(shrunk[1], 1.911392, 1e-6);
  EXPECT_EQ(shrunk[39], 63.0f);
  EXPECT_NEAR(shrunk[78], 125.696203, 1e-5);
  const std::vector<float> grown = linear_places(127, 159);
  EXPECT_EQ(grown[0], 0.0f) << "clamped at the first row";
  EXPECT_NEAR(grown[1], 0.698113, 1e-6);
  EXPECT_EQ(grown[79], 63.0f);
  EXPECT_EQ(grown[158], 126.0f) << "clamped at the last row";
}

TEST(RelativeTable, BlendsWholeRows) {
  const std::vector<float> out = resize_relative_table(std::vector<float>{0, 10, 4, 30}, 2, 1, 2);
  EXPECT_EQ(out, (std::vector<float>{2, 20}));
}

TEST(RelativeTable, EqualLengthsCopy) {
  const std::vector<float> table{1, 2, 3, 4, 5, 6};
  EXPECT_EQ(resize_relative_table(table, 3, 3, 2), table);
}

TEST(RelativeTable, RefusesTablesOfAnotherSize) {
  test::expect_error(ErrorCode::kInternal, "relative table has 5 values, expected 3x2",
                     [] { (void)resize_relative_table(std::vector<float>(5), 3, 2, 2); });
}

/// Of torch.nn.functional.interpolate, PyTorch 2.15, mode "bicubic" without antialiasing, for a
/// table of 4 x 4 values i^1.3.
TEST(PositionTable, ResizesPlainlyAsPyTorchDoes) {
  std::vector<float> table(16);
  for (std::size_t i = 0; i < table.size(); ++i) {
    table[i] = std::pow(static_cast<float>(i), 1.3f);
  }
  constexpr float kRounding = 1e-6f;  // of PyTorch, which sums in f32
  const auto expect_begins = [&](std::int64_t to, const std::vector<float>& expected) {
    const std::vector<float> resized = resize_position_table(table, 4, to, 1, BicubicTable::kPlain);
    for (std::size_t i = 0; i < expected.size(); ++i)
      EXPECT_NEAR(resized[i], expected[i], kRounding * (1 + expected[i]));
  };
  expect_begins(3, {0.8530662f, 2.5762029f, 4.9703102f, 10.3846998f, 13.6022797f, 16.9862328f,
                    24.3003654f, 28.0832291f, 32.0019073f});
  expect_begins(6, {-0.6052566f, -0.2027994f, 0.6346340f, 1.4551488f, 2.7455330f, 3.5879242f,
                    2.0718122f, 2.7734993f});
}

}  // namespace
}  // namespace fovea::common
