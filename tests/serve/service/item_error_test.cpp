#include "serve/service/item_error.h"

#include <gtest/gtest.h>

namespace fovea::serve {
namespace {

/// The header of a PNG of this size: what a probe looks at.
std::vector<std::uint8_t> png_header(std::uint32_t width, std::uint32_t height) {
  std::vector<std::uint8_t> bytes{0x89, 'P', 'N', 'G', '\r', '\n', 0x1a, '\n',
                                  0,    0,   0,   13,  'I',  'H',  'D',  'R'};
  for (const std::uint32_t side : {width, height}) {
    for (int shift = 24; shift >= 0; shift -= 8) {
      bytes.push_back(static_cast<std::uint8_t>(side >> shift));
    }
  }
  for (const int byte : {8, 2, 0, 0, 0, 0, 0, 0, 0}) {
    bytes.push_back(static_cast<std::uint8_t>(byte));
  }
  return bytes;
}

std::string code_for(std::uint32_t width, std::uint32_t height) {
  const MediaItem item = image_bytes(png_header(width, height), "items[3]");
  const ApiError error = item_error(Error(ErrorCode::kInvalidArgument, "no"), item, MediaOptions{});
  EXPECT_EQ(error.status(), 422);
  EXPECT_EQ(error.param(), "items[3]");
  return error.code();
}

TEST(ItemError, NamesTheLimitThatAnImageBreaks) {
  EXPECT_EQ(code_for(60'000, 60'000), "image_too_large");
  EXPECT_EQ(code_for(70'000, 10), "image_too_large");
  EXPECT_EQ(code_for(5000, 10), "aspect_ratio_too_large");
  EXPECT_EQ(code_for(2000, 10), "item_too_many_tokens");
}

TEST(ItemError, KeepsTheCodesOfOtherErrors) {
  const MediaItem item = image_bytes(png_header(10, 10), "items[0]");
  const auto code = [&](ErrorCode of) { return item_error(Error(of, "no"), item, {}).code(); };
  EXPECT_EQ(code(ErrorCode::kCorruptData), "decode_failed");
  EXPECT_EQ(code(ErrorCode::kUnsupported), "decode_failed") << "bytes that are no image";
  EXPECT_EQ(code(ErrorCode::kDeadline), "deadline_exceeded");
}

TEST(ItemError, IsTheServersWhereItsDecoderProcessIsGone) {
  const MediaItem item = image_bytes(png_header(10, 10), "items[0]");
  const Error gone(ErrorCode::kUnavailable, "cannot start fovea-decoder: Too many open files");
  const ApiError error = item_error(gone, item, {});
  EXPECT_EQ(error.status(), 503);
  EXPECT_EQ(error.code(), "decoder_unavailable");
  EXPECT_EQ(error.retry_after_s, 1);
  EXPECT_EQ(error.param(), "items[0]");
}

TEST(ItemError, SaysOfAVideoThatItIsNotSupported) {
  const MediaItem item = video_bytes(std::vector<std::uint8_t>{1, 2, 3}, "items[0]");
  EXPECT_EQ(item_error(Error(ErrorCode::kUnsupported, "no"), item, {}).code(), "unsupported_media");
}

TEST(ItemError, SaysOfAnImageWithoutAHeaderThatItIsOutOfLimits) {
  const MediaItem item = image_bytes(std::vector<std::uint8_t>{1, 2, 3}, "items[0]");
  EXPECT_EQ(item_error(Error(ErrorCode::kInvalidArgument, "no"), item, {}).code(),
            "image_out_of_limits");
}

}  // namespace
}  // namespace fovea::serve
