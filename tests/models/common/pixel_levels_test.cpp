// Patch embeddings over levels of several bytes.
#include "models/common/pixel_levels.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

namespace fovea::common {
namespace {

/// Rounding of the weights, the bias and the sum to f32, relative to values of up to 4.
constexpr double kLevelTolerance = 1e-5;

TEST(PixelLevels, EveryByteIsAWholeNumberAroundZero) {
  const media::NormalizeTable table = level_table();
  for (const auto& channel : table) {
    EXPECT_EQ(channel[0], -128);
    EXPECT_EQ(channel[128], 0);
    EXPECT_EQ(channel[255], 127);
  }
}

TEST(PixelLevels, TheLayerOverBytesGivesWhatTheLayerOverNormalisedPixelsGives) {
  const PixelScaling scaling{.image_mean = {0.5f, 0.25f, 0.75f}, .image_std = {0.25f, 0.5f, 1}};
  const std::vector<float> stored{1, -2, 3, 0.5f, 0.25f, -1};  // two pixels of three channels
  // Levels of those pixels, channel by channel, as three bytes each: whole, and parts of a level.
  constexpr std::uint8_t kBytes[6][3] = {{0, 0, 0},    {255, 255, 255}, {64, 128, 0},
                                         {200, 1, 99}, {17, 250, 3},    {128, 0, 1}};
  for (const media::LevelScale levels : {media::LevelScale{}, media::LevelScale{-128, 2}}) {
    std::vector<float> weight = stored;
    std::vector<float> bias{0.125f};
    split_levels(2, levels, scaling)(weight, bias);
    ASSERT_EQ(weight.size(), 18u);
    double want = 0.125;
    double got = double{bias[0]};
    for (std::size_t i = 0; i < 6; ++i) {
      const std::size_t channel = i / 2;
      const auto& b = kBytes[i];
      const double level = levels.first + levels.step * (b[0] + b[1] / 256.0 + b[2] / 65536.0);
      want += stored[i] * (level / 255 - scaling.image_mean[channel]) / scaling.image_std[channel];
      for (std::size_t plane = 0; plane < 3; ++plane) {
        got += double{weight[channel * 6 + plane * 2 + i % 2]} * (b[plane] - 128.0);
      }
    }
    EXPECT_NEAR(got, want, kLevelTolerance) << levels.step;
  }
}

}  // namespace
}  // namespace fovea::common
