#include <gtest/gtest.h>

#include <algorithm>

#include "media/decode_image.h"
#include "media/interrupted.h"
#include "media/plugins/image_plugins.h"
#include "media/test_images.h"
#include "support/expect_error.h"

namespace fovea::media {
namespace {

using test::Bytes;
using test::decode;
using test::expect_error;

class DecodeGif : public ::testing::Test {
 protected:
  void SetUp() override {
    for (const ImagePluginStatus& plugin : image_plugin_status())
      if (plugin.format == "gif" && plugin.text.starts_with("not used"))
        GTEST_SKIP() << plugin.text;
  }
};

/// A screen of these sides with four colours, and a frame of 2 x 1 pixels of indices 1 and 2.
Bytes gif(std::uint8_t width, std::uint8_t height, std::uint8_t frame_x,
          const Bytes& control = {}) {
  Bytes file{'G', 'I', 'F', '8', '9', 'a', width, 0,  height, 0,  0x81, 0, 0,
             1,   2,   3,   10,  20,  30,  40,    50, 60,     70, 80,   90};
  file.insert(file.end(), control.begin(), control.end());
  // Codes of 3 bits: clear 4, 1, 2, end 5.
  const Bytes frame{',', frame_x, 0, 0, 0, 2, 0, 1, 0, 0, 2, 2, 0x8C, 0x0A, 0, ';'};
  file.insert(file.end(), frame.begin(), frame.end());
  return file;
}

const Bytes kIndex1IsTransparent{'!', 0xF9, 4, 1, 0, 0, 1, 0};

TEST_F(DecodeGif, FrameStandsOnTheFirstColour) {
  const Image image = decode(gif(3, 1, 1));
  EXPECT_EQ(image.width_px, 3);
  EXPECT_EQ(image.rgb, (Bytes{1, 2, 3, 10, 20, 30, 40, 50, 60}));
}

TEST_F(DecodeGif, TransparencyIsCompositedOrIgnored) {
  const Bytes file = gif(3, 1, 1, kIndex1IsTransparent);
  EXPECT_EQ(decode(file).rgb, (Bytes{255, 255, 255, 255, 255, 255, 40, 50, 60}));
  EXPECT_EQ(decode(file, {.profile = MediaProfile::kVllm023}).rgb,
            (Bytes{10, 20, 30, 10, 20, 30, 40, 50, 60}));
}

TEST_F(DecodeGif, AFrameMakesTheCanvasLarger) { EXPECT_EQ(decode(gif(1, 1, 5)).width_px, 7); }

TEST_F(DecodeGif, EveryTruncationIsCorruptUpToThePixels) {
  const Bytes file = gif(3, 1, 1);
  for (std::size_t size = 6; size < file.size() - 2; ++size)
    expect_error(
        ErrorCode::kCorruptData,
        size < file.size() - 5 ? "image: the GIF file ends" : "image: cannot decode GIF", [&] {
          (void)decode(Bytes(file.begin(), file.begin() + static_cast<std::ptrdiff_t>(size)));
        });
  for (const std::ptrdiff_t missing : {1, 2})
    EXPECT_EQ(decode(Bytes(file.begin(), file.end() - missing)).rgb, decode(file).rgb);
}

TEST_F(DecodeGif, SizesOfCodesThatEncodersDoNotUseAreCorrupt) {
  Bytes file = gif(3, 1, 1);
  for (const int bits : {0, 1, 9, 12, 255}) {
    file[file.size() - 6] = static_cast<std::uint8_t>(bits);
    expect_error(ErrorCode::kCorruptData,
                 "image: expected GIF codes of 2 to 8 bits, got " + std::to_string(bits),
                 [&] { (void)decode(file); });
  }
}

TEST_F(DecodeGif, StopsWhenAskedTo) {
  test::expect_stops([] { (void)decode(gif(3, 1, 1)); });
}

TEST(ImagePlugins, AreOfFormatsThatNeedOne) {
  expect_error(ErrorCode::kInternal, "image format without a decoder",
               [] { (void)image_plugin(ImageFormat::kPng, "cat.png"); });
}

}  // namespace
}  // namespace fovea::media
