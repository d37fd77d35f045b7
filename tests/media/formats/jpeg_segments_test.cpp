#include "media/formats/jpeg_segments.h"

#include <gtest/gtest.h>

#include "media/test_images.h"
#include "support/expect_error.h"

namespace fovea::media {
namespace {

using test::expect_error;

constexpr std::uint8_t kBaseline = 0xC0;
constexpr std::uint8_t kProgressive = 0xC2;
constexpr std::uint8_t kProgressiveArithmetic = 0xCA;

struct Sides {
  int width;
  int height;
};

/// The segments of a file of three components, 4:2:0, without their entropy-coded bytes.
class JpegOutline {
 public:
  JpegOutline(std::uint8_t marker, Sides sides) {
    const auto high = [](int n) { return static_cast<std::uint8_t>(n >> 8); };
    const auto low = [](int n) { return static_cast<std::uint8_t>(n & 255); };
    file_ = {0xFF,
             0xD8,
             0xFF,
             marker,
             0,
             17,
             8,
             high(sides.height),
             low(sides.height),
             high(sides.width),
             low(sides.width),
             3,
             1,
             0x22,
             0,
             2,
             0x11,
             0,
             3,
             0x11,
             0};
  }

  JpegOutline& scan(const test::Bytes& components, int times = 1) {
    for (int i = 0; i < times; ++i) {
      const auto count = static_cast<std::uint8_t>(components.size());
      test::Bytes segment = {0xFF, 0xDA, 0, static_cast<std::uint8_t>(6 + 2 * count), count};
      for (const std::uint8_t id : components) segment.insert(segment.end(), {id, 0});
      segment.insert(segment.end(), {1, 63, 0});
      file_.insert(file_.end(), segment.begin(), segment.end());
    }
    return *this;
  }

  [[nodiscard]] test::Bytes file() const {
    test::Bytes ended = file_;
    ended.insert(ended.end(), {0xFF, 0xD9});
    return ended;
  }
  [[nodiscard]] JpegFrame frame() const { return read_jpeg_frame(file_, "x"); }
  void check() const { check_jpeg_scans(file(), frame(), "x"); }

 private:
  test::Bytes file_;
};

constexpr Sides k12Megapixels{4000, 3000};

TEST(JpegSegments, BlocksFillTheLastMcu) {
  const JpegFrame frame = JpegOutline(kBaseline, {17, 1}).frame();
  EXPECT_EQ(frame.blocks_across(frame.components[0]), 4);
  EXPECT_EQ(frame.blocks_down(frame.components[0]), 2);
  EXPECT_EQ(frame.blocks_across(frame.components[1]), 2);
  EXPECT_EQ(frame.blocks_down(frame.components[1]), 1);
}

TEST(JpegSegments, CoefficientsOfSeveralScansAreKept) {
  const auto bytes = [](JpegOutline outline) { return jpeg_decoder_bytes(outline.frame()); };
  const std::size_t rows = bytes(JpegOutline(kBaseline, k12Megapixels).scan({1, 2, 3}));
  EXPECT_LT(rows, std::size_t{1} << 20);
  constexpr std::size_t kCoefficients = 250 * 188 * (4 + 1 + 1) * 128;  // MCUs of six blocks
  EXPECT_EQ(bytes(JpegOutline(kBaseline, k12Megapixels).scan({1})), rows + kCoefficients);
  EXPECT_EQ(bytes(JpegOutline(kProgressive, k12Megapixels).scan({1, 2, 3})), rows + kCoefficients);
  EXPECT_EQ(bytes(JpegOutline(kProgressive, k12Megapixels)), rows + kCoefficients);
}

TEST(JpegSegments, AHundredScansOfTwelveMegapixelsAreFine) {
  EXPECT_NO_THROW(JpegOutline(kProgressive, k12Megapixels).scan({1, 2, 3}).scan({1}, 120).check());
}

TEST(JpegSegments, ScansOutOfProportionAreRefused) {
  const JpegOutline outline = JpegOutline(kProgressive, k12Megapixels).scan({1}, 179);
  expect_error(
      ErrorCode::kInvalidArgument,
      "x: expected a JPEG of at most 33554432 blocks in all scans, got 33652000 in 179 scans",
      [&] { outline.check(); });
}

TEST(JpegSegments, SmallScansAreCountedToo) {
  EXPECT_NO_THROW(JpegOutline(kProgressive, {8, 8}).scan({1}, 500).check());
  expect_error(ErrorCode::kInvalidArgument, "x: expected a JPEG of at most 500 scans, got 501", [] {
    JpegOutline(kProgressive, {8, 8}).scan({1}, 501).check();
  });
}

TEST(JpegSegments, BlocksOfTheArithmeticCoderWeighMore) {
  const auto outline = [](int scans) {
    return JpegOutline(kProgressiveArithmetic, k12Megapixels).scan({1}, scans);
  };
  EXPECT_NO_THROW(outline(22).check());
  EXPECT_THROW(outline(23).check(), Error);
}

TEST(JpegSegments, ScansBehindTheEndOfTheImageDoNotCount) {
  test::Bytes file = JpegOutline(kProgressive, {8, 8}).scan({1}).file();
  const test::Bytes more = JpegOutline(kProgressive, {8, 8}).scan({1}, 600).file();
  file.insert(file.end(), more.begin(), more.end());
  EXPECT_NO_THROW(check_jpeg_scans(file, read_jpeg_frame(file, "x"), "x"));
}

}  // namespace
}  // namespace fovea::media
