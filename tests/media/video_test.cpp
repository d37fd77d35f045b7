// Sampling and decoding video containers. The test videos have 25 frames at 10 per second; frame i
// is grey 10 * i with a red square in its top left corner.
#include "media/video.h"

#include <gtest/gtest.h>

#include "core/file.h"
#include "fovea/error.h"

namespace fovea::media {
namespace {

std::vector<std::uint8_t> video(const std::string& name) {
  return read_file(std::string(FOVEA_TEST_SOURCE_DIR) + "/tests/media/videos/" + name, 1 << 20);
}

FrameSampler always(std::vector<std::int64_t> indices) {
  return [indices](const VideoInfo&) { return indices; };
}

std::array<int, 3> pixel(const Image& image, std::int64_t x, std::int64_t y) {
  const auto at = static_cast<std::size_t>((y * image.width_px + x) * 3);
  return {image.rgb[at], image.rgb[at + 1], image.rgb[at + 2]};
}

/// Lossy coding at high quality moves flat grey by a level or two.
void expect_grey(const Image& image, int level) {
  for (const int channel : pixel(image, 60, 40)) EXPECT_NEAR(channel, level, 3);
}

class VideoTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (video_status().starts_with("not used"))
      GTEST_SKIP() << "no video plugin: " << video_status();
  }
};

TEST_F(VideoTest, DescribesTheStreamToTheSampler) {
  for (const char* name : {"ramp_h264.mp4", "ramp_vp9.webm"}) {
    SCOPED_TRACE(name);
    VideoInfo seen;
    const auto bytes = video(name);
    (void)decode_video(bytes, name,
                       [&](const VideoInfo& info) {
                         seen = info;
                         return std::vector<std::int64_t>{0};
                       },
                       {});
    EXPECT_EQ(seen.num_frames, 25);
    EXPECT_NEAR(seen.fps, 10.0, 0.01);
    EXPECT_EQ(seen.width_px, 96);
    EXPECT_EQ(seen.height_px, 64);
  }
}

TEST_F(VideoTest, ReturnsExactlyTheSampledFramesAcrossKeyFramesAndReordering) {
  for (const char* name : {"ramp_h264.mp4", "ramp_vp9.webm"}) {
    SCOPED_TRACE(name);
    const std::vector<std::int64_t> wanted{0, 3, 11, 12, 13, 13, 24};
    const auto bytes = video(name);
    const VideoFrames frames = decode_video(bytes, name, always(wanted), {});
    ASSERT_EQ(frames.frames.size(), wanted.size());
    for (std::size_t i = 0; i < wanted.size(); ++i) {
      SCOPED_TRACE(wanted[i]);
      EXPECT_EQ(frames.frames[i].width_px, 96);
      expect_grey(frames.frames[i], static_cast<int>(10 * wanted[i]));
    }
  }
}

TEST_F(VideoTest, UsesTheColourMatrixOfTheStream) {
  const auto bytes = video("ramp_h264.mp4");  // BT.709, limited range
  const Image frame = decode_video(bytes, "h264", always({5}), {}).frames.front();
  const auto [red, green, blue] = pixel(frame, 8, 8);
  EXPECT_GT(red, 245);  // BT.601 would give some 20 levels of green
  EXPECT_LT(green, 10);
  EXPECT_LT(blue, 10);
}

TEST_F(VideoTest, TurnsImagesUpright) {
  const auto bytes = video("ramp_rotated.mp4");
  const Image frame = decode_video(bytes, "rotated", always({5}), {}).frames.front();
  EXPECT_EQ(frame.width_px, 64);
  EXPECT_EQ(frame.height_px, 96);
  EXPECT_GT(pixel(frame, 8, 88)[0] - pixel(frame, 8, 88)[1], 150)
      << "a quarter turn counter-clockwise moves the square to the bottom left";
}

ErrorCode code_of(std::span<const std::uint8_t> bytes, const FrameSampler& sampler,
                  const MediaLimits& limits = {}) {
  try {
    (void)decode_video(bytes, "clip", sampler, limits);
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("clip"), std::string::npos) << error.what();
    return error.code();
  }
  ADD_FAILURE() << "no error";
  return ErrorCode::kInternal;
}

TEST_F(VideoTest, RefusesWhatIsNoVideo) {
  const std::vector<std::uint8_t> text(100, 'x');
  EXPECT_EQ(code_of(text, always({0})), ErrorCode::kUnsupported);
  EXPECT_EQ(code_of({}, always({0})), ErrorCode::kUnsupported);
}

TEST_F(VideoTest, RefusesPlaylistsThatWouldOpenOtherFiles) {
  const std::string playlist = "#EXTM3U\n#EXTINF:1,\nfile:///etc/hostname\n";
  EXPECT_EQ(code_of({reinterpret_cast<const std::uint8_t*>(playlist.data()), playlist.size()},
                    always({0})),
            ErrorCode::kUnsupported);
}

TEST_F(VideoTest, ReportsATruncatedFile) {
  auto bytes = video("ramp_h264.mp4");
  bytes.resize(bytes.size() * 6 / 10);
  EXPECT_EQ(
      code_of(bytes,
              [](const VideoInfo& info) { return std::vector<std::int64_t>{info.num_frames - 1}; }),
      ErrorCode::kCorruptData);
}

TEST_F(VideoTest, ChecksLimits) {
  const auto bytes = video("ramp_h264.mp4");
  EXPECT_EQ(code_of(bytes, always({0}), {.max_image_pixels = 1000}), ErrorCode::kInvalidArgument);
  EXPECT_EQ(code_of(bytes, always({0, 1, 2}), {.max_video_frames = 2}),
            ErrorCode::kInvalidArgument);
}

TEST_F(VideoTest, SamplersMustStayInside) {
  const auto bytes = video("ramp_h264.mp4");
  EXPECT_EQ(code_of(bytes, always({25})), ErrorCode::kInternal);
  EXPECT_EQ(code_of(bytes, always({3, 2})), ErrorCode::kInternal);
  EXPECT_EQ(code_of(bytes, always({})), ErrorCode::kInternal);
}

}  // namespace
}  // namespace fovea::media
