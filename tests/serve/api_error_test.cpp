#include "serve/api_error.h"

#include <gtest/gtest.h>

#include "fovea/media.h"
#include "fovea/options.h"

namespace fovea::serve {
namespace {

TEST(ApiError, HasAStatusForEveryErrorOfTheLibrary) {
  const std::pair<ErrorCode, std::pair<int, std::string>> expected[] = {
      {ErrorCode::kInvalidArgument, {400, "invalid_value"}},
      {ErrorCode::kCorruptData, {422, "decode_failed"}},
      {ErrorCode::kNotFound, {404, "not_found"}},
      {ErrorCode::kUnsupported, {422, "unsupported_media"}},
      {ErrorCode::kOutOfMemory, {500, "out_of_memory"}},
      {ErrorCode::kUnavailable, {429, "queue_full"}},
      {ErrorCode::kDevice, {500, "device_error"}},
      {ErrorCode::kIo, {500, "internal"}},
      {ErrorCode::kCancelled, {499, "client_closed_request"}},
      {ErrorCode::kDeadline, {504, "deadline_exceeded"}},
      {ErrorCode::kInternal, {500, "internal"}}};
  for (const auto& [code, wanted] : expected) {
    const ApiError error = to_api_error(Error(code, "why"), "items[0]");
    EXPECT_EQ(error.status(), wanted.first) << to_string(code);
    EXPECT_EQ(error.code(), wanted.second);
    EXPECT_EQ(error.param(), "items[0]");
  }
}

TEST(CurrentApiError, TakesWhateverIsThrown) {
  const auto caught = [](auto thrown) {
    try {
      throw thrown;
    } catch (...) {
      return current_api_error();
    }
  };
  EXPECT_EQ(caught(ApiError(418, "tea", "pot")).status(), 418);
  EXPECT_EQ(caught(Error(ErrorCode::kDeadline, "late")).status(), 504);
  EXPECT_EQ(caught(std::bad_alloc()).status(), 503);
  EXPECT_EQ(caught(std::runtime_error("?")).status(), 500);
}

TEST(ApiError, KeepsWhatNamesFilesOfTheServerForItsLog) {
  const char* reason = "/srv/models/secret/model.safetensors: cannot read";
  for (const ErrorCode code : {ErrorCode::kIo, ErrorCode::kInternal}) {
    const ApiError error = to_api_error(Error(code, reason), "items[0]");
    EXPECT_EQ(std::string_view(error.what()).find("/srv"), std::string_view::npos);
    EXPECT_EQ(error.detail, reason);
  }
  try {
    throw std::runtime_error(reason);
  } catch (...) {
    EXPECT_EQ(std::string_view(current_api_error().what()).find("/srv"), std::string_view::npos);
    EXPECT_EQ(current_api_error().detail, reason);
  }
  EXPECT_EQ(to_api_error(Error(ErrorCode::kCorruptData, "items[0]: no PNG")).detail, "");
}

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
