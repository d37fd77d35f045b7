// The format of a file by its first bytes.
#include "media/decode_image.h"

#include <gtest/gtest.h>

#include <span>
#include <string>
#include <string_view>

#include "core/check.h"
#include "support/expect_error.h"

namespace fovea::media {
namespace {

using std::string_view_literals::operator""sv;
using test::expect_error;

ImageFormat detect(std::string_view head) {
  return detect_image_format({reinterpret_cast<const std::uint8_t*>(head.data()), head.size()},
                             "cat.x");
}

TEST(DetectImageFormat, KnowsTheSupportedFormats) {
  EXPECT_EQ(detect("\xFF\xD8\xFF\xE0"), ImageFormat::kJpeg);
  EXPECT_EQ(detect("\x89PNG\r\n\x1A\n"), ImageFormat::kPng);
  EXPECT_EQ(detect("RIFF\0\0\0\0WEBPVP8 "sv), ImageFormat::kWebp);
  EXPECT_EQ(detect("BM\x46\0\0\0\0\0\0\0\x36\0"sv), ImageFormat::kBmp);
  for (const std::string_view magic : {"II*\0"sv, "MM\0*"sv, "II+\0"sv})
    EXPECT_EQ(detect(std::string(magic) + "\0\0\0\0"), ImageFormat::kTiff);
  EXPECT_EQ(detect("\0\0\0\x20"
                   "ftypavif\0\0\0\0"sv),
            ImageFormat::kAvif);
  EXPECT_EQ(detect("\0\0\0\x18"
                   "ftypmif1\0\0\0\0miafavif"sv),
            ImageFormat::kAvif);
  for (const std::string_view brand : {"heic"sv, "heix"sv, "hevc"sv, "mif1"sv, "msf1"sv})
    EXPECT_EQ(detect(cat("\0\0\0\x18"
                         "ftyp"sv,
                         brand, "\0\0\0\0miafheic"sv)),
              ImageFormat::kHeic)
        << brand;
  EXPECT_EQ(detect("GIF87a\1\0\1\0\0\0\0"sv), ImageFormat::kGif);
  EXPECT_EQ(detect("GIF89a\1\0\1\0\0\0\0"sv), ImageFormat::kGif);
}

struct ForeignFile {
  const char* label;
  std::string_view head;
  const char* message;
};

class ForeignFormats : public ::testing::TestWithParam<ForeignFile> {};

TEST_P(ForeignFormats, AreUnsupportedByName) {
  expect_error(ErrorCode::kUnsupported, GetParam().message, [] { (void)detect(GetParam().head); });
}

INSTANTIATE_TEST_SUITE_P(
    Magic, ForeignFormats,
    ::testing::Values(

        ForeignFile{"Video",
                    "\0\0\0\x20"
                    "ftypisom\0\0\0\0"sv,
                    "video (ISO media) is not supported"},
        ForeignFile{"JpegXl", "\xFF\x0A\xFA\x7F"sv, "JPEG XL is not supported"},
        ForeignFile{"Jpeg2000", "\0\0\0\x0CjP  \r\n\x87\n"sv, "JPEG 2000 is not supported"},
        ForeignFile{"Pdf", "%PDF-1.7\n"sv, "PDF is not supported"},
        ForeignFile{"Svg", "<svg xmlns=''/>"sv, "SVG is not supported"},
        ForeignFile{"GifOfLater", "GIF90a\1\0\1\0\0\0\0"sv, "not an image"},
        ForeignFile{"Text", "this is not an image\n"sv, "not an image"},
        ForeignFile{"OneByte", "\xFF"sv, "not an image"},
        ForeignFile{"RiffAudio", "RIFF\0\0\0\0WAVEfmt "sv, "not an image"}),
    [](const auto& foreign) { return foreign.param.label; });

TEST(DetectImageFormat, AnEmptyFileIsCorrupt) {
  expect_error(ErrorCode::kCorruptData, "cat.x: expected an image, got an empty file",
               [] { (void)detect(""); });
}

}  // namespace
}  // namespace fovea::media
