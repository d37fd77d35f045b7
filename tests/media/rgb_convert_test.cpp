#include "media/rgb_convert.h"

#include <gtest/gtest.h>

#include "media/test_images.h"

namespace fovea::media {
namespace {

using test::Bytes;

constexpr std::uint8_t kWhite[3] = {255, 255, 255};

Bytes composite(const Bytes& rgba, const std::uint8_t background[3]) {
  Bytes rgb(rgba.size() / 4 * 3);
  composite_rgba(rgba.data(), rgba.size() / 4, background, rgb.data());
  return rgb;
}

// Values by docs/reference/image_resize.md, "Decoding to RGB".

TEST(RgbConvert, CompositesOnWhite) {
  const auto at = [](std::uint8_t alpha) { return composite({10, 128, 250, alpha}, kWhite); };
  EXPECT_EQ(at(0), (Bytes{255, 255, 255}));
  EXPECT_EQ(at(1), (Bytes{254, 255, 255}));
  EXPECT_EQ(at(64), (Bytes{194, 223, 254}));
  EXPECT_EQ(at(127), (Bytes{133, 192, 253}));
  EXPECT_EQ(at(128), (Bytes{132, 191, 252}));
  EXPECT_EQ(at(200), (Bytes{63, 155, 251}));
  EXPECT_EQ(at(254), (Bytes{11, 128, 250}));
  EXPECT_EQ(at(255), (Bytes{10, 128, 250}));
  EXPECT_EQ(composite({100, 150, 200, 128}, kWhite), (Bytes{177, 202, 227}));
}

TEST(RgbConvert, CompositesOnAnyColour) {
  const std::uint8_t background[3] = {0, 50, 100};
  EXPECT_EQ(composite({10, 20, 30, 0, 10, 20, 30, 255}, background),
            (Bytes{0, 50, 100, 10, 20, 30}));
}

TEST(RgbConvert, DropsAlpha) {
  const Bytes rgba = {100, 150, 200, 128, 1, 2, 3, 0};
  Bytes rgb(6);
  drop_alpha(rgba.data(), 2, rgb.data());
  EXPECT_EQ(rgb, (Bytes{100, 150, 200, 1, 2, 3}));
}

TEST(RgbConvert, InvertedCmyk) {
  // Ink (10, 200, 30, 60), stored inverted.
  const Bytes stored = {245, 55, 225, 195};
  Bytes rgb(3);
  inverted_cmyk_to_rgb(stored.data(), 1, rgb.data());
  EXPECT_EQ(rgb, (Bytes{187, 42, 172}));
}

TEST(RgbConvert, Grey16IsClippedNotScaled) {
  const Bytes grey = {0x12, 0x34, 0x00, 0xF0, 0x00, 0xFF, 0x01, 0x00};
  Bytes rgb(12);
  clip_grey16(grey.data(), 4, rgb.data());
  EXPECT_EQ(rgb, (Bytes{255, 255, 255, 240, 240, 240, 255, 255, 255, 255, 255, 255}));
}

TEST(RgbConvert, MulDiv255RoundsExactly) {
  for (std::uint32_t a = 0; a < 256; ++a)
    for (std::uint32_t b = 0; b < 256; ++b)
      EXPECT_EQ(mul_div_255(a, b), (2 * a * b + 255) / 510) << a << ' ' << b;
}

TEST(ReplaceColor, LeavesOtherColours) {
  std::vector<std::uint8_t> rgb = {1, 2, 3, 1, 2, 4, 1, 2, 3};
  constexpr std::uint8_t kKey[3] = {1, 2, 3};
  constexpr std::uint8_t kBackground[3] = {7, 8, 9};
  replace_color(rgb.data(), 3, kKey, kBackground);
  EXPECT_EQ(rgb, (std::vector<std::uint8_t>{7, 8, 9, 1, 2, 4, 7, 8, 9}));
}

}  // namespace
}  // namespace fovea::media
