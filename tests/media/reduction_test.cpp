// Which fraction of its size an image is decoded at, and whether what it shows lies where it did.
#include "media/reduction.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>

#include "media/decode_image.h"
#include "media/resize/resize.h"
#include "media/test_images.h"
#include "support/expect_error.h"

namespace fovea::media {
namespace {

using test::Bytes;

TEST(Reduced, RoundsSidesUpAndSaysByHowMuch) {
  EXPECT_EQ(reduced(64, 8).side_px, 8);
  EXPECT_EQ(reduced(64, 8).margin_px, 0);
  EXPECT_EQ(reduced(65, 8).side_px, 9);
  EXPECT_EQ(reduced(65, 8).margin_px, 0.875);
  EXPECT_EQ(reduced(9, 2).side_px, 5);
  EXPECT_EQ(reduced(9, 2).margin_px, 0.5);
  EXPECT_EQ(reduced(1, 4).side_px, 1);
  EXPECT_EQ(reduced(7, 1).margin_px, 0);
}

TEST(ChooseReduction, LeavesEnoughForTheResize) {
  for (const int reduction : {2, 4, 8}) {
    const std::int64_t width = reduction * 175;
    const std::int64_t height = reduction * 70;
    EXPECT_EQ(choose_reduction(width, height, 100, 40), reduction);
    EXPECT_EQ(choose_reduction(width - 1, height, 100, 40), reduction / 2);
    EXPECT_EQ(choose_reduction(width, height - 1, 100, 40), reduction / 2);
    EXPECT_EQ(choose_reduction(2 * width - 1, 2 * height, 100, 40), reduction);
  }
  EXPECT_EQ(choose_reduction(4000, 3000, 1024, 768), 2);
  EXPECT_EQ(choose_reduction(1 << 14, 1 << 14, 100, 40), 8);
  EXPECT_EQ(choose_reduction(1 << 14, 1 << 14, 0, 0), 1) << "the image is needed in full";
}

/// A smooth picture that differs at all four edges.
Bytes encoded_picture(int width, int height, int subsampling) {
  const Bytes samples =
      test::make_samples<std::uint8_t>(width, height, 3, [&](int x, int y, int c) {
        const double u = static_cast<double>(x) / width;
        const double v = static_cast<double>(y) / height;
        return static_cast<int>(128 + 60 * std::sin(5 * u + c) + 60 * std::cos(7 * v + 2 * u));
      });
  return test::encode_jpeg({.width = width, .height = height, .subsampling = subsampling}, samples);
}

/// The picture of an image at 40 x 30.
Bytes small(const Image& image) {
  Bytes rgb(40 * 30 * 3);
  resize_rgb({.src = image.rgb,
              .src_width_px = image.width_px,
              .src_height_px = image.height_px,
              .dst = rgb,
              .dst_width_px = 40,
              .dst_height_px = 30,
              .engine = ResizeEngine::kTorchvision,
              .filter = ResizeFilter::kBicubic,
              .src_margins = image.margins});
  return rgb;
}

int largest_difference(const Bytes& a, const Bytes& b) {
  int largest = 0;
  for (std::size_t i = 0; i < a.size(); ++i) largest = std::max(largest, std::abs(a[i] - b[i]));
  return largest;
}

TEST(ReducedImage, ShowsThePictureWhereItWasInEveryOrientation) {
  for (const int subsampling : {0, 2}) {  // 4:4:4 and 4:2:0
    const Bytes stored = encoded_picture(641, 489, subsampling);
    for (int orientation = 1; orientation <= 8; ++orientation) {
      const Bytes file = test::with_jpeg_exif(stored, test::exif_block(orientation, false));
      const Bytes full = small(decode_image(file, "image", {}));
      for (const int reduction : {2, 4, 8}) {
        SCOPED_TRACE(::testing::Message() << "1/" << reduction << ", orientation " << orientation);
        Image image = decode_image(file, "image", {}, reduction);
        const ImageInfo info = probe_image(file, "image", {}, reduction);
        EXPECT_EQ(image.width_px, info.width_px);
        EXPECT_EQ(image.height_px, info.height_px);
        EXPECT_EQ(image.width_px, reduced(orientation >= 5 ? 489 : 641, reduction).side_px);
        // Roundings of two resizes and of the decoder: a level or two each.
        EXPECT_LE(largest_difference(small(image), full), 3);
        std::swap(image.margins.left_px, image.margins.right_px);
        std::swap(image.margins.top_px, image.margins.bottom_px);
        EXPECT_GE(largest_difference(small(image), full), reduction == 8 ? 4 : 1);
      }
    }
  }
}

TEST(ReducedImage, OfAnotherFormatHasItsFullSize) {
  const Bytes png = test::encode_png({.width = 20, .height = 10}, std::vector<std::uint16_t>(600));
  EXPECT_EQ(probe_image(png, "image", {}, 8).width_px, 20);
  EXPECT_EQ(decode_image(png, "image", {}, 8).height_px, 10);
}

TEST(ReducedImage, IsRefusedByTheLimitsOfTheFullSize) {
  const Bytes file = encoded_picture(64, 48, 0);
  const MediaOptions options{.limits = {.max_image_pixels = 64 * 48 - 1}};
  test::expect_error(ErrorCode::kInvalidArgument, "64 x 48",
                     [&] { (void)decode_image(file, "image", options, 8); });
  test::expect_error(ErrorCode::kInternal, "no image is decoded at 1/3 of its size",
                     [&] { (void)decode_image(file, "image", {}, 3); });
}

TEST(ReducedImage, TakesLessMemoryThanTheFullOne) {
  const Bytes file = encoded_picture(1024, 768, 0);
  const std::size_t full = probe_image(file, "image", {}).decode_bytes;
  EXPECT_LT(probe_image(file, "image", {}, 4).decode_bytes, full - 3 * 1024 * 768 * 7 / 8);
}

}  // namespace
}  // namespace fovea::media
