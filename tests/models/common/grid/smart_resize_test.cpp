// Sizes of the Qwen and GLM families, as their processors compute them.
#include "models/common/grid/smart_resize.h"

#include <gtest/gtest.h>

#include "fovea/error.h"

namespace fovea::common {
namespace {

struct ImageCase {
  std::int64_t height, width, factor;
  PixelRange range;
  Size2d expected;
};

constexpr PixelRange kQwen2{3136, 12845056};
constexpr PixelRange kQwen3{65536, 16777216};

class SmartResizeImage : public ::testing::TestWithParam<ImageCase> {};

TEST_P(SmartResizeImage, GivesTheListedSize) {
  const ImageCase& c = GetParam();
  const Size2d got = smart_resize_image(c.height, c.width, c.factor, c.range);
  EXPECT_EQ(got.height_px, c.expected.height_px);
  EXPECT_EQ(got.width_px, c.expected.width_px);
}

INSTANTIATE_TEST_SUITE_P(
    Tables, SmartResizeImage,
    ::testing::Values(ImageCase{336, 336, 28, kQwen2, {336, 336}},
                      ImageCase{480, 640, 28, kQwen2, {476, 644}},
                      ImageCase{720, 1280, 28, kQwen2, {728, 1288}},
                      ImageCase{1080, 1920, 28, kQwen2, {1092, 1932}},
                      ImageCase{70, 98, 28, kQwen2, {56, 112}},  // 2.5 -> 2, 3.5 -> 4
                      ImageCase{42, 42, 28, kQwen2, {56, 56}},   // 1.5 -> 2
                      ImageCase{10, 10, 28, kQwen2, {56, 56}},   // rounds to 0 first
                      ImageCase{4000, 6000, 28, kQwen2, {2912, 4368}},
                      ImageCase{50, 5000, 28, kQwen2, {56, 5012}},
                      ImageCase{1080, 1920, 28, {3136, 1003520}, {728, 1316}},
                      ImageCase{336, 336, 32, kQwen3, {320, 320}},  // 10.5 -> 10
                      ImageCase{480, 640, 32, kQwen3, {480, 640}},
                      ImageCase{720, 1280, 32, kQwen3, {704, 1280}},  // 22.5 -> 22
                      ImageCase{1080, 1920, 32, kQwen3, {1088, 1920}},
                      ImageCase{100, 100, 32, kQwen3, {256, 256}},
                      ImageCase{80, 112, 32, kQwen3, {224, 320}},
                      ImageCase{4000, 6000, 32, kQwen3, {3328, 4992}},
                      ImageCase{1, 1, 32, {4096, 16777216}, {64, 64}}));

struct VideoCase {
  std::int64_t frames, height, width;
  Size2d expected;
};

constexpr PixelRange kQwen3Video{4096, 25165824};

class SmartResizeVideo : public ::testing::TestWithParam<VideoCase> {};

TEST_P(SmartResizeVideo, GivesTheListedSize) {
  const VideoCase& c = GetParam();
  const Size2d got = smart_resize_video(c.frames, c.height, c.width, 2, 32, kQwen3Video);
  EXPECT_EQ(got.height_px, c.expected.height_px);
  EXPECT_EQ(got.width_px, c.expected.width_px);
}

INSTANTIATE_TEST_SUITE_P(
    Tables, SmartResizeVideo,
    ::testing::Values(VideoCase{16, 720, 1280, {704, 1280}}, VideoCase{15, 720, 1280, {704, 1280}},
                      VideoCase{32, 720, 1280, {640, 1152}}, VideoCase{46, 720, 1280, {544, 960}},
                      VideoCase{64, 1080, 1920, {448, 832}}, VideoCase{768, 1080, 1920, {128, 224}},
                      VideoCase{2, 64, 48, {64, 64}}));

ErrorCode code_of_image(std::int64_t height, std::int64_t width) {
  try {
    (void)smart_resize_image(height, width, 28, kQwen2);
  } catch (const Error& error) {
    return error.code();
  }
  return ErrorCode::kInternal;
}

TEST(SmartResize, RefusesSideRatiosAbove200) {
  EXPECT_EQ(code_of_image(10, 2010), ErrorCode::kInvalidArgument);
  EXPECT_EQ(code_of_image(5000, 1), ErrorCode::kInvalidArgument);
  EXPECT_NO_THROW((void)smart_resize_image(10, 2000, 28, kQwen2));
}

TEST(SmartResize, RefusesEmptyImages) {
  EXPECT_EQ(code_of_image(0, 10), ErrorCode::kInvalidArgument);
}

TEST(SmartResize, OneFrameCountsAsTwo) {
  EXPECT_EQ(smart_resize_video(1, 720, 1280, 2, 32, kQwen3Video),
            smart_resize_video(2, 720, 1280, 2, 32, kQwen3Video));
}

// Sides are multiples of the factor and the area respects the limits wherever the ratio allows.
TEST(SmartResizeProperty, MultiplesInsideTheLimits) {
  for (std::int64_t height = 1; height < 3000; height = height * 5 / 3 + 1) {
    for (std::int64_t width = 1; width < 3000; width = width * 7 / 4 + 1) {
      if (std::max(height, width) > 200 * std::min(height, width)) continue;
      const PixelRange range{65536, 1003520};
      const Size2d size = smart_resize_image(height, width, 32, range);
      SCOPED_TRACE(::testing::Message() << height << "x" << width);
      EXPECT_EQ(size.height_px % 32, 0);
      EXPECT_EQ(size.width_px % 32, 0);
      EXPECT_GE(size.height_px * size.width_px, range.min_pixels);
      const bool clamped = size.height_px == 32 || size.width_px == 32;
      EXPECT_TRUE(clamped || size.height_px * size.width_px <= range.max_pixels);
    }
  }
}

}  // namespace
}  // namespace fovea::common
