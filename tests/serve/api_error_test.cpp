#include "serve/api_error.h"

#include <gtest/gtest.h>

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

}  // namespace
}  // namespace fovea::serve
