#include "media/resize/weights.h"

#include <gtest/gtest.h>

#include <vector>

namespace fovea::media {
namespace {

using Weights = std::vector<std::int32_t>;

constexpr ResizeEngine P = ResizeEngine::kPillow;
constexpr ResizeEngine U = ResizeEngine::kTorchvision;

Weights weights_of(const AxisWeights& axis, std::size_t i) {
  const auto begin = axis.weight.begin() + static_cast<std::ptrdiff_t>(i) * axis.taps;
  return {begin, begin + axis.count[i]};
}

struct Row {
  std::int32_t first;
  Weights pillow;
  Weights torchvision;
};

/// Compares the first rows of an axis with a table; the rest of the tables is mirrored.
void expect_rows(std::int64_t in, std::int64_t out, ResizeFilter filter, int torchvision_bits,
                 const std::vector<Row>& rows) {
  const AxisWeights p = make_axis_weights(in, out, P, filter);
  EXPECT_EQ(p.shift, 22);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    EXPECT_EQ(p.first[i], rows[i].first) << i;
    EXPECT_EQ(weights_of(p, i), rows[i].pillow) << i;
  }
  const AxisWeights u = make_axis_weights(in, out, U, filter);
  EXPECT_EQ(u.shift, torchvision_bits);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    EXPECT_EQ(u.first[i], rows[i].first) << i;
    EXPECT_EQ(weights_of(u, i), rows[i].torchvision) << i;
  }
}

// Weights computed independently by docs/reference/image_resize.md, "Axis weights".

TEST(ResizeWeights, Bilinear8To5) {
  expect_rows(8, 5, ResizeFilter::kBilinear, 15,
              {{0, {2478452, 1715852}, {19363, 13405}},
               {1, {1087412, 2330169, 776723}, {8495, 18204, 6068}},
               {2, {174763, 1922389, 1922389, 174763}, {1365, 15019, 15019, 1365}},
               {4, {776723, 2330169, 1087412}, {6068, 18204, 8495}},
               {6, {1715852, 2478452}, {13405, 19363}}});
}

TEST(ResizeWeights, Bicubic8To5) {
  expect_rows(8, 5, ResizeFilter::kBicubic, 15,
              {{0, {2564317, 1799741, -76390, -93365}, {20034, 14060, -597, -729}},
               {0,
                {-158790, 1221146, 2541575, 784553, -189483, -4698},
                {-1241, 9540, 19856, 6129, -1480, -37}},
               {1,
                {-143542, 103181, 2137513, 2137513, 103181, -143542},
                {-1121, 806, 16699, 16699, 806, -1121}},
               {2,
                {-4698, -189483, 784553, 2541575, 1221146, -158790},
                {-37, -1480, 6129, 19856, 9540, -1241}},
               {4, {-93365, -76390, 1799741, 2564317}, {-729, -597, 14060, 20034}}});
}

TEST(ResizeWeights, Bicubic6To4) {
  expect_rows(
      6, 4, ResizeFilter::kBicubic, 15,
      {{0, {2748694, 1649217, -169672, -33934}, {21474, 12885, -1326, -265}},
       {0, {-160578, 1560821, 2601368, 366118, -173425}, {-1255, 12194, 20323, 2860, -1355}}});
}

TEST(ResizeWeights, Bicubic3To6) {
  expect_rows(3, 6, ResizeFilter::kBicubic, 14,
              {{0, {4564390, -370086}, {17830, -1446}},
               {0, {3398305, 887845, -91846}, {13275, 3468, -359}},
               {0, {928510, 3553952, -288158}, {3627, 13883, -1126}},
               {0, {-288158, 3553952, 928510}, {-1126, 13883, 3627}},
               {0, {-91846, 887845, 3398305}, {-359, 3468, 13275}},
               {1, {-370086, 4564390}, {-1446, 17830}}});
}

TEST(ResizeWeights, Lanczos8To5) {
  const AxisWeights axis = make_axis_weights(8, 5, P, ResizeFilter::kLanczos);
  const std::vector<Weights> rows{
      {2580032, 1896603, -129706, -239655, 85792, 1237},
      {-294049, 1357369, 2574568, 914207, -373123, -36738, 52069},
      {70198, -322373, 148421, 2200906, 2200906, 148421, -322373, 70198}};
  for (std::size_t i = 0; i < rows.size(); ++i) {
    EXPECT_EQ(axis.first[i], 0);
    EXPECT_EQ(weights_of(axis, i), rows[i]);
  }
}

TEST(ResizeWeights, FirstRowsOfShortAxes) {
  expect_rows(5, 3, ResizeFilter::kBicubic, 15,
              {{0, {2452055, 1871305, 0, -129056}, {19157, 14620, 0, -1008}}});
  const AxisWeights grown = make_axis_weights(4, 7, U, ResizeFilter::kBicubic);
  EXPECT_EQ(grown.shift, 14);
  EXPECT_EQ(weights_of(grown, 0), (Weights{17684, -1300}));
  const AxisWeights halved = make_axis_weights(8, 4, U, ResizeFilter::kBicubic);
  EXPECT_EQ(halved.shift, 16);
  EXPECT_EQ(weights_of(halved, 0), (Weights{30437, 30437, 7952, -2468, -823}));
}

TEST(ResizeWeights, TorchvisionPrecisionFollowsTheLargestWeight) {
  const auto bits = [](std::int64_t in, std::int64_t out) {
    return make_axis_weights(in, out, U, ResizeFilter::kBicubic).shift;
  };
  EXPECT_EQ(bits(1280, 1024), 15);
  EXPECT_EQ(bits(336, 448), 14);
  EXPECT_EQ(bits(640, 1024), 14);
  EXPECT_EQ(bits(2000, 640), 16);
  EXPECT_EQ(bits(4000, 400), 18);
  EXPECT_EQ(bits(1000, 990), 15);
  EXPECT_EQ(bits(100000, 2), 22);
}

TEST(ResizeWeights, PlanesHoldTheSameWeights) {
  for (const std::int64_t out : {3, 17, 500}) {
    const AxisWeights u = make_axis_weights(100, out, U, ResizeFilter::kBicubic);
    EXPECT_EQ(Weights(u.planes[0].begin(), u.planes[0].end()), u.weight);
    EXPECT_TRUE(u.planes[1].empty());
    const AxisWeights p = make_axis_weights(100, out, P, ResizeFilter::kBicubic);
    for (std::size_t i = 0; i < p.weight.size(); ++i) {
      EXPECT_GE(p.planes[1][i], 0);
      EXPECT_EQ(p.planes[0][i] * (1 << kLowPlaneBits) + p.planes[1][i], p.weight[i]);
    }
  }
}

TEST(ResizeWeights, PaddingIsZero) {
  const AxisWeights axis = make_axis_weights(10, 6, P, ResizeFilter::kBicubic);
  EXPECT_EQ(axis.taps % kTapGroup, 0);
  EXPECT_EQ(axis.first.size(), 8u);
  EXPECT_EQ(axis.weight.size(), 8u * static_cast<std::size_t>(axis.taps));
  for (std::size_t i = 0; i < axis.first.size(); ++i)
    for (std::int64_t j = axis.count[i]; j < axis.taps; ++j)
      EXPECT_EQ(axis.weight[i * static_cast<std::size_t>(axis.taps) + static_cast<std::size_t>(j)],
                0);
}

}  // namespace
}  // namespace fovea::media
