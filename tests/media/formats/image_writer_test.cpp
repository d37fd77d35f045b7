#include "media/formats/image_writer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <utility>

#include "media/test_images.h"

namespace fovea::media {
namespace {

using test::Bytes;

// More rows than are put in their places together, and not a multiple of them.
constexpr int kStoredWidth = 7;
constexpr int kStoredHeight = 37;

Bytes stored() { return test::checksum_pattern(kStoredWidth, kStoredHeight, 3); }

Image turned(const Image& image, Orientation orientation) {
  ImageWriter writer(image.width_px, image.height_px, orientation);
  const std::int64_t row_bytes = image.width_px * 3;
  for (std::int64_t y = 0; y < image.height_px; ++y) {
    std::copy_n(image.rgb.data() + y * row_bytes, row_bytes, writer.row(y));
    writer.finish_row(y);
  }
  return writer.take();
}

TEST(ImageWriter, OrientationsUndoEachOther) {
  const Image image{.width_px = kStoredWidth, .height_px = kStoredHeight, .rgb = stored()};
  for (const auto& [first, second] :
       {std::pair{Orientation::kRotate90, Orientation::kRotate270},
        {Orientation::kRotate180, Orientation::kRotate180},
        {Orientation::kMirrorHorizontal, Orientation::kMirrorHorizontal},
        {Orientation::kMirrorVertical, Orientation::kMirrorVertical},
        {Orientation::kTranspose, Orientation::kTranspose},
        {Orientation::kTransverse, Orientation::kTransverse}}) {
    const Image once = turned(image, first);
    EXPECT_NE(once.rgb, image.rgb);
    EXPECT_EQ(turned(once, second).rgb, image.rgb) << static_cast<int>(first);
  }
}

TEST(ImageWriter, RotationsAndMirrorsMakeTheOthers) {
  const Image image{.width_px = kStoredWidth, .height_px = kStoredHeight, .rgb = stored()};
  const Image twice = turned(turned(image, Orientation::kRotate90), Orientation::kRotate90);
  EXPECT_EQ(twice.rgb, turned(image, Orientation::kRotate180).rgb);
  const Image transposed =
      turned(turned(image, Orientation::kRotate90), Orientation::kMirrorHorizontal);
  EXPECT_EQ(transposed.rgb, turned(image, Orientation::kTranspose).rgb);
  const Image transverse =
      turned(turned(image, Orientation::kRotate270), Orientation::kMirrorHorizontal);
  EXPECT_EQ(transverse.rgb, turned(image, Orientation::kTransverse).rgb);
}

TEST(ImageWriter, TurnsClockwise) {
  const Image row{.width_px = 2, .height_px = 1, .rgb = {1, 1, 1, 2, 2, 2}};
  const Image column = turned(row, Orientation::kRotate90);
  EXPECT_EQ(column.width_px, 1);
  EXPECT_EQ(column.height_px, 2);
  EXPECT_EQ(column.rgb, row.rgb) << "the left end is at the top";
  EXPECT_EQ(turned(column, Orientation::kRotate90).rgb, (Bytes{2, 2, 2, 1, 1, 1}));
}

TEST(ImageWriter, PiecesOfRowsMakeTheSameImage) {
  const Image image{.width_px = kStoredWidth, .height_px = kStoredHeight, .rgb = stored()};
  for (int code = 1; code <= 8; ++code) {
    const auto orientation = static_cast<Orientation>(code);
    ImageWriter writer(kStoredWidth, kStoredHeight, orientation);
    for (std::int64_t first = 0; first < 2; ++first)
      for (std::int64_t y = 0; y < kStoredHeight; ++y) {
        Bytes piece;
        for (std::int64_t x = first; x < kStoredWidth; x += 2)
          piece.insert(piece.end(), image.rgb.begin() + (y * kStoredWidth + x) * 3,
                       image.rgb.begin() + (y * kStoredWidth + x + 1) * 3);
        writer.store(y, first, 2, static_cast<std::int64_t>(piece.size() / 3), piece.data());
      }
    EXPECT_EQ(writer.take().rgb, turned(image, orientation).rgb) << code;
  }
}

}  // namespace
}  // namespace fovea::media
