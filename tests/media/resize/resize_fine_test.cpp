// Resizing to parts of grey levels.
#include "media/resize/resize_fine.h"

#include <gtest/gtest.h>

#include <vector>

#include "media/interrupted.h"
#include "support/expect_error.h"

namespace fovea::media {
namespace {

using Bytes = std::vector<std::uint8_t>;

/// The last bit of f32 below 256, and half of the smallest part of a level.
constexpr double kTolerance = 1.0 / 65536 + 0.5 / 65536;
/// The same of bicubic filters, whose levels go to 512 by parts of twice that size, and whose
/// weights of up to 1.2 of levels of 200 are sums of three terms in f32.
constexpr double kBicubicTolerance = 2 * kTolerance + 3 * 200 * 1.2 * 0x1p-23;

/// Levels of a grey image, [height, width].
std::vector<double> resize(const Bytes& grey, std::int64_t width, std::int64_t height,
                           std::int64_t to_width, std::int64_t to_height,
                           FineFilter filter = FineFilter::kBilinear) {
  Bytes rgb;
  for (const std::uint8_t level : grey) rgb.insert(rgb.end(), 3, level);
  const auto plane = static_cast<std::size_t>(to_width * to_height * 3);
  Bytes out(plane * kLevelBytes);
  resize_rgb_fine({.src = rgb,
                   .src_width_px = width,
                   .src_height_px = height,
                   .dst = out,
                   .dst_width_px = to_width,
                   .dst_height_px = to_height,
                   .filter = filter});
  const LevelScale scale = level_scale(filter);
  std::vector<double> levels;
  for (std::size_t i = 0; i < plane; ++i) {
    const double bytes = out[i] + out[plane + i] / 256.0 + out[2 * plane + i] / 65536.0;
    const double level = double{scale.first} + double{scale.step} * bytes;
    if (i % 3 == 0) {
      levels.push_back(level);
    } else {
      EXPECT_EQ(level, levels.back()) << "channels are resized alike";
    }
  }
  return levels;
}

void expect_near(const std::vector<double>& got, const std::vector<double>& want,
                 double tolerance = kTolerance) {
  ASSERT_EQ(got.size(), want.size());
  for (std::size_t i = 0; i < got.size(); ++i) EXPECT_NEAR(got[i], want[i], tolerance) << i;
}

TEST(ResizeFine, AnImageThatKeepsItsSizeKeepsItsLevels) {
  for (const FineFilter filter :
       {FineFilter::kBilinear, FineFilter::kBicubic, FineFilter::kPlainBicubic}) {
    EXPECT_EQ(resize({0, 1, 128, 254, 255, 7}, 3, 2, 3, 2, filter),
              (std::vector<double>{0, 1, 128, 254, 255, 7}));
  }
}

// torch.nn.functional.interpolate(mode="bilinear", antialias=True) of PyTorch 2.11 gives these.
TEST(ResizeFine, HasTheLevelsOfTorch) {
  expect_near(resize({0, 1, 100, 255}, 4, 1, 2, 1), {14.7142868, 152.2857208});
  expect_near(resize({0, 9, 200}, 3, 1, 5, 1), {0, 3.6000004, 9, 123.6000290, 200});
  expect_near(resize({0, 10, 20, 250}, 2, 2, 3, 3), {0, 5, 10, 10, 70, 130, 20, 135, 250});
}

// torch.nn.functional.interpolate(mode="bicubic") of PyTorch 2.15 gives these, with and without
// antialias=True.
TEST(ResizeFine, BicubicFiltersHaveTheLevelsOfTorch) {
  constexpr auto kWide = FineFilter::kBicubic;
  expect_near(resize({0, 1, 100, 255}, 4, 1, 2, 1, kWide), {2.958678, 162.950409},
              kBicubicTolerance);
  expect_near(resize({0, 9, 200}, 3, 1, 5, 1, kWide),
              {-0.679245, -5.395526, 9, 133.410461, 214.415085}, kBicubicTolerance);
  constexpr auto kPlain = FineFilter::kPlainBicubic;
  expect_near(resize({0, 1, 100, 255}, 4, 1, 2, 1, kPlain), {-8.78125, 186.78125},
              kBicubicTolerance);
  expect_near(resize({0, 9, 200}, 3, 1, 5, 1, kPlain),
              {-0.864, -10.259957, 9, 126.540024, 218.336014}, kBicubicTolerance);
  expect_near(resize({7}, 1, 1, 3, 1, kPlain), {7, 7, 7}, kBicubicTolerance);
}

TEST(ResizeFine, BicubicFiltersReachBeyondTheRangeOfBytes) {
  const std::vector<double> wide = resize({0, 255, 255, 0}, 2, 2, 4, 4, FineFilter::kBicubic);
  EXPECT_NEAR(wide[0], -48.970589, kBicubicTolerance);
  EXPECT_NEAR(wide[3], 303.970581, kBicubicTolerance);
  const std::vector<double> plain = resize({0, 255, 255, 0}, 2, 2, 4, 4, FineFilter::kPlainBicubic);
  EXPECT_NEAR(plain[0], -59.462128, kBicubicTolerance);
  EXPECT_NEAR(plain[3], 314.462158, kBicubicTolerance);
}

TEST(ResizeFine, NothingIsRoundedBetweenThePasses) {
  // 1 / 9 of a level in each direction of a 3 x 3 mean would vanish in bytes.
  const std::vector<double> levels = resize({1, 0, 0, 0, 0, 0, 0, 0, 0}, 3, 3, 1, 1);
  EXPECT_GT(levels[0], 0.01);
  EXPECT_LT(levels[0], 0.2);
}

TEST(ResizeFine, RefusesImagesOfAnotherSizeThanTheirMemory) {
  Bytes six(6);
  Bytes nine(9);
  test::expect_error(ErrorCode::kInvalidArgument, "source of 1 x 1 pixels must have 3 bytes, got 6",
                     [&] {
                       resize_rgb_fine({six, 1, 1, nine, 1, 1});
                     });
  test::expect_error(ErrorCode::kInvalidArgument, "result of 1 x 1 pixels must have 9 bytes, got 6",
                     [&] {
                       resize_rgb_fine({six, 2, 1, six, 1, 1});
                     });
  test::expect_error(ErrorCode::kInvalidArgument, "result must have sides >= 1", [&] {
    resize_rgb_fine({six, 2, 1, nine, 0, 1});
  });
}

TEST(ResizeFine, StopsWhenAskedTo) {
  test::expect_stops([] { (void)resize(Bytes(48), 8, 6, 4, 3); });
}

}  // namespace
}  // namespace fovea::media
