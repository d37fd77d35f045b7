// What all formats share: detection, limits, messages, and the pixels of Pillow.
#include "media/decode_image.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <limits>
#include <stdexcept>
#include <string>
#include <vector>

#include "core/file.h"
#include "media/test_images.h"
#include "support/expect_error.h"
#include "support/sha256.h"

namespace fovea::media {
namespace {

using test::Bytes;
using test::decode;
using test::expect_error;
using test::PngColor;

// Pixels of Pillow. tests/media/make_images.py makes the images and prints this table;
// ycck_420.jpg comes from libjpeg-turbo, because Pillow does not write YCCK.

struct ReferenceImage {
  const char* file;
  std::int64_t width_px;
  std::int64_t height_px;
  const char* sha256_head;  ///< of the RGB bytes, 32 hex digits
};

class PillowReference : public ::testing::TestWithParam<ReferenceImage> {};

TEST_P(PillowReference, HasTheSamePixels) {
  const std::string path =
      std::string(FOVEA_TEST_SOURCE_DIR) + "/tests/media/images/" + GetParam().file;
  const Image image = decode(read_file(path, 1 << 16));
  EXPECT_EQ(image.width_px, GetParam().width_px);
  EXPECT_EQ(image.height_px, GetParam().height_px);
  EXPECT_EQ(test::sha256_hex(image.rgb).substr(0, 32), GetParam().sha256_head);
}

TEST_P(PillowReference, LeavesNothingOfTheMemoryItGets) {
  const std::string path =
      std::string(FOVEA_TEST_SOURCE_DIR) + "/tests/media/images/" + GetParam().file;
  const std::vector<std::uint8_t> file = read_file(path, 1 << 16);
  Bytes memory(std::size_t{1} << 16, 0xab);
  const std::uint8_t* const place = memory.data();
  const Image image = decode_image(file, "image", {}, 1, std::move(memory));
  EXPECT_EQ(image.rgb, decode(file).rgb);
  const bool is_copied = std::string_view(GetParam().file).ends_with(".webp");
  EXPECT_TRUE(is_copied || image.rgb.data() == place) << "new memory was taken";
}

INSTANTIATE_TEST_SUITE_P(
    Pillow940, PillowReference,
    ::testing::Values(
        ReferenceImage{"animated.webp", 43, 29, "b28a17bf59aa7783a8a525c5fc5e6f81"},
        ReferenceImage{"animated_alpha.webp", 43, 29, "c854accfcb8df822b5d8b7fc9cf45ffe"},
        ReferenceImage{"cmyk.jpg", 43, 29, "3bc4925df52d5afc683fbaeca640c5a5"},
        ReferenceImage{"cmyk_without_adobe_marker.jpg", 43, 29, "3bc4925df52d5afc683fbaeca640c5a5"},
        ReferenceImage{"damaged_early_end.jpg", 43, 29, "d54d787cc471ceb88857365470dda58c"},
        ReferenceImage{"damaged_height.jpg", 43, 50, "f000d59184bfe39eee8bdaf7f7a8e678"},
        ReferenceImage{"damaged_pixels.jpg", 43, 29, "31f1513e39b66d39310104860e144400"},
        ReferenceImage{"damaged_zeros_for_end.jpg", 43, 29, "7ddb71fd580a79bc977e6a9649d48233"},
        ReferenceImage{"grey.jpg", 43, 29, "f23a455c4d3d445543150856e6149c27"},
        ReferenceImage{"lossless_alpha.webp", 20, 15, "84e5f7489eb7a63942c347b09f1b7bb9"},
        ReferenceImage{"lossy.webp", 43, 29, "76e7fc784e700494dca77d7588451ecb"},
        ReferenceImage{"lossy_alpha.webp", 43, 29, "9e642f102a724573f987c4af7dba31e1"},
        ReferenceImage{"palette.png", 43, 29, "913a95c423d7152ae67543f40ddf6f82"},
        ReferenceImage{"restarts_lost_marker.jpg", 43, 29, "7d92e062f353838f679d38b8520659d3"},
        ReferenceImage{"restarts_lost_pixels.jpg", 43, 29, "7d92e062f353838f679d38b8520659d3"},
        ReferenceImage{"restarts_wrong_marker.jpg", 43, 29, "7ddb71fd580a79bc977e6a9649d48233"},
        ReferenceImage{"rgb.png", 43, 29, "fb87b058397ff25d9ebca4d46e450ed8"},
        ReferenceImage{"rgb_420.jpg", 43, 29, "7ddb71fd580a79bc977e6a9649d48233"},
        ReferenceImage{"rgb_420_progressive.jpg", 43, 29, "7ddb71fd580a79bc977e6a9649d48233"},
        ReferenceImage{"rgb_422.jpg", 43, 29, "6a173b6ebd0002949bc957993bb6a5a8"},
        ReferenceImage{"rgb_422_progressive.jpg", 43, 29, "6a173b6ebd0002949bc957993bb6a5a8"},
        ReferenceImage{"rgb_444.jpg", 43, 29, "41374e309d06cf3726118b5435d43974"},
        ReferenceImage{"rgb_444_progressive.jpg", 43, 29, "41374e309d06cf3726118b5435d43974"},
        ReferenceImage{"rgba.png", 43, 29, "be2047be6e9c2058186e7340562e3f26"},
        ReferenceImage{"rows_small_window.png", 43, 18, "e43a83c3578f41f170a67a8677d40034"},
        ReferenceImage{"rows_wrong_checksum.png", 43, 18, "e43a83c3578f41f170a67a8677d40034"},
        ReferenceImage{"ycck_420.jpg", 43, 29, "ea928e6ebe1c004765125571340d0311"}),
    [](const auto& image) {
      std::string name = image.param.file;
      std::replace_if(
          name.begin(), name.end(), [](char c) { return std::isalnum(c) == 0; }, '_');
      return name;
    });

// Limits.

TEST(ProbeImage, ReadsSidesWithoutDecoding) {
  const Bytes file =
      test::encode_png({.width = 5, .height = 3},
                       test::make_samples<std::uint16_t>(5, 3, 3, [](int, int, int) { return 1; }));
  const ImageInfo info = probe_image(file, "x.png", {});
  EXPECT_EQ(info.format, ImageFormat::kPng);
  EXPECT_EQ(info.width_px, 5);
  EXPECT_EQ(info.height_px, 3);
}

TEST(ProbeImage, NamesThePixelLimit) {
  expect_error(ErrorCode::kInvalidArgument,
               "bomb.png: expected at most 178956970 pixels, got 40000 x 40000",
               [] { (void)probe_image(test::png_that_claims(40000, 40000), "bomb.png", {}); });
}

TEST(ProbeImage, NamesTheSideLimit) {
  expect_error(ErrorCode::kInvalidArgument, "sides of at most 65535 pixels, got 65536 x 1",
               [] { (void)probe_image(test::png_that_claims(65536, 1), "x", {}); });
  expect_error(ErrorCode::kInvalidArgument, "sides of at most 65535 pixels, got 1 x 4294967295",
               [] { (void)probe_image(test::png_that_claims(1, 0xFFFFFFFF), "x", {}); });
}

TEST(ProbeImage, NamesTheByteLimit) {
  const MediaOptions options{.limits = {.max_image_bytes = 10}};
  expect_error(ErrorCode::kInvalidArgument, "x: expected at most 10 encoded bytes, got 11",
               [&] { (void)probe_image(Bytes(11), "x", options); });
}

TEST(ProbeImage, RefusesSidesOfZero) {
  expect_error(ErrorCode::kCorruptData, "sides of at least 1 pixel, got 0 x 7",
               [] { (void)probe_image(test::png_that_claims(0, 7), "x", {}); });
}

TEST(ProbeImage, LimitsAreInclusive) {
  const Bytes file =
      test::encode_png({.width = 4, .height = 3},
                       test::make_samples<std::uint16_t>(4, 3, 3, [](int, int, int) { return 1; }));
  MediaOptions options{
      .limits = {.max_image_pixels = 12, .max_image_side_px = 4, .max_image_bytes = file.size()}};
  EXPECT_EQ(probe_image(file, "x", options).width_px, 4);
  options.limits.max_image_pixels = 11;
  EXPECT_THROW((void)probe_image(file, "x", options), Error);
}

TEST(ProbeImage, LimitsLeftOpenDoNotOverflow) {
  constexpr std::int64_t kOpen = std::numeric_limits<std::int64_t>::max();
  const MediaOptions open{.limits = {.max_image_pixels = kOpen, .max_image_side_px = kOpen}};
  expect_error(ErrorCode::kInvalidArgument, "expected at most 1099511627776 pixels", [&] {
    (void)probe_image(test::png_that_claims(0xFFFFFFFF, 0xFFFFFFFF), "x", open);
  });
}

/// Bytes by which decoding raises the peak memory of a process. The child does nothing else.
long peak_growth_of_decoding(const Bytes& file) {
  int channel[2];
  if (pipe(channel) != 0) throw std::runtime_error("pipe failed");
  const pid_t child = fork();
  if (child == 0) {
    const auto peak_bytes = [] {
      rusage usage{};
      getrusage(RUSAGE_SELF, &usage);
      // NOLINTNEXTLINE(cppcoreguidelines-pro-type-union-access): glibc has the member in a union
      return usage.ru_maxrss * 1024;
    };
    const long before = peak_bytes();
    long growth = -1;  // it did not fail
    try {
      (void)decode(file);
    } catch (const Error&) {
      growth = peak_bytes() - before;
    }
    const bool written = write(channel[1], &growth, sizeof(growth)) == sizeof(growth);
    _exit(written ? 0 : 1);
  }
  long growth = -1;
  const bool received = read(channel[0], &growth, sizeof(growth)) == sizeof(growth);
  close(channel[0]);
  close(channel[1]);
  int status = 0;
  waitpid(child, &status, 0);
  return received && status == 0 ? growth : -1;
}

constexpr std::array<std::uint8_t, 2> kFrameHeader{0xFF, 0xC0};  // marker of a baseline JPEG
/// Of the process while it decodes a file whose header promises more pixels than limits allow.
constexpr long kMaxGrowth = 64L << 20;

void expect_cheap_refusal(const Bytes& file) {
  const long growth = peak_growth_of_decoding(file);
  EXPECT_GE(growth, 0);
  EXPECT_LT(growth, kMaxGrowth);
}

TEST(DecodeImageMemory, APngBombIsRefusedCheaply) {
  expect_cheap_refusal(test::png_that_claims(40000, 40000));
}

TEST(DecodeImageMemory, AJpegBombIsRefusedCheaply) {
  Bytes file = test::encode_jpeg({}, Bytes{1, 2, 3});
  const auto frame =
      std::search(file.begin(), file.end(), kFrameHeader.begin(), kFrameHeader.end());
  ASSERT_NE(frame, file.end());
  std::fill_n(frame + 5, 4, std::uint8_t{0xFF});  // height and width: 65535
  expect_cheap_refusal(file);
}

TEST(DecodeImageMemory, ATruncatedLargeJpegIsRefusedCheaply) {
  // 160 million pixels, within the limits, and none of them there.
  Bytes file = test::encode_jpeg({}, Bytes{1, 2, 3});
  const auto frame =
      std::search(file.begin(), file.end(), kFrameHeader.begin(), kFrameHeader.end());
  ASSERT_NE(frame, file.end());
  const Bytes sides = {0x4E, 0x20, 0x1F, 0x40};  // 20000 x 8000
  std::copy(sides.begin(), sides.end(), frame + 5);
  file.resize(file.size() - 2);
  expect_cheap_refusal(file);
}

TEST(DecodeImageMemory, APngWithAHugeTextChunkCostsNothing) {
  test::PngSpec spec;
  spec.text.assign(std::size_t{100} << 20, 'a');  // 100 MB of text in 100 KB
  Bytes file = test::encode_png(spec, std::vector<std::uint16_t>{1, 2, 3});
  spec = {};
  EXPECT_LT(file.size(), std::size_t{1} << 20);
  EXPECT_EQ(decode(file).rgb, (Bytes{1, 2, 3}));
  file.resize(file.size() - 20);  // no end of pixels: an error, which the measurement needs
  expect_cheap_refusal(file);
}

// EXIF orientation, through every container.

constexpr int kNumberedWidth = 3;
constexpr int kNumberedHeight = 2;

/// Pixel (x, y) of an image turned upright, as a number of the stored image: row * 10 + column.
std::vector<int> upright_numbers(const Image& image) {
  std::vector<int> numbers;
  for (std::size_t i = 0; i < image.rgb.size(); i += 3) numbers.push_back(image.rgb[i] / 20);
  return numbers;
}

std::vector<int> expected_numbers(int orientation) {
  // The stored image is 0 1 2 / 3 4 5.
  switch (orientation) {
    case 1: return {0, 1, 2, 3, 4, 5};
    case 2: return {2, 1, 0, 5, 4, 3};
    case 3: return {5, 4, 3, 2, 1, 0};
    case 4: return {3, 4, 5, 0, 1, 2};
    case 5: return {0, 3, 1, 4, 2, 5};
    case 6: return {3, 0, 4, 1, 5, 2};
    case 7: return {5, 2, 4, 1, 3, 0};
    case 8: return {2, 5, 1, 4, 0, 3};
    default: return {};
  }
}

template <class T>
std::vector<T> numbered_image(int channels) {
  return test::make_samples<T>(kNumberedWidth, kNumberedHeight, channels, [](int x, int y, int c) {
    return c == 3 ? 255 : (y * kNumberedWidth + x) * 20 + 10;
  });
}

class Orientations : public ::testing::TestWithParam<int> {
 protected:
  static void expect_turned(const Bytes& file) {
    for (const MediaProfile profile : {MediaProfile::kVllm, MediaProfile::kTransformers})
      expect_as(file, profile, GetParam());
    for (const MediaProfile profile : {MediaProfile::kVllm023, MediaProfile::kSglang})
      expect_as(file, profile, 1);
  }

 private:
  /// An image that was turned by `orientation`, and a header that says so.
  static void expect_as(const Bytes& file, MediaProfile profile, int orientation) {
    SCOPED_TRACE(static_cast<int>(profile));
    const Image image = decode(file, {.profile = profile});
    const bool swapped = orientation >= 5;
    EXPECT_EQ(image.width_px, swapped ? kNumberedHeight : kNumberedWidth);
    EXPECT_EQ(image.height_px, swapped ? kNumberedWidth : kNumberedHeight);
    EXPECT_EQ(upright_numbers(image), expected_numbers(orientation));
    const ImageInfo info = probe_image(file, "image", {.profile = profile});
    EXPECT_EQ(info.width_px, image.width_px);
    EXPECT_EQ(info.height_px, image.height_px);
  }
};

TEST_P(Orientations, OfPng) {
  for (const bool big_endian : {false, true})
    expect_turned(test::encode_png({.width = kNumberedWidth,
                                    .height = kNumberedHeight,
                                    .exif = test::exif_block(GetParam(), big_endian)},
                                   numbered_image<std::uint16_t>(3)));
}

TEST_P(Orientations, OfJpeg) {
  const Bytes jpeg = test::encode_jpeg({.width = kNumberedWidth, .height = kNumberedHeight},
                                       numbered_image<std::uint8_t>(3));
  for (const bool big_endian : {false, true})
    expect_turned(test::with_jpeg_exif(jpeg, test::exif_block(GetParam(), big_endian)));
}

TEST_P(Orientations, OfWebp) {
  const Bytes webp =
      test::encode_lossless_webp(kNumberedWidth, kNumberedHeight, numbered_image<std::uint8_t>(4));
  for (const bool big_endian : {false, true})
    expect_turned(test::with_webp_exif(webp, kNumberedWidth, kNumberedHeight,
                                       test::exif_block(GetParam(), big_endian)));
}

INSTANTIATE_TEST_SUITE_P(Exif, Orientations, ::testing::Range(1, 9));

}  // namespace
}  // namespace fovea::media
