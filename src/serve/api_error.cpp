#include "serve/api_error.h"

#include <algorithm>
#include <limits>
#include <new>
#include <optional>
#include <utility>

#include "fovea/engine.h"

namespace fovea::serve {
namespace {

/// Beyond this ratio of sides processors refuse an image. Source: docs/reference/qwen_glm.md.
constexpr std::int64_t kMaxAspectRatio = 200;

/// The size of an encoded image, whatever it is.
std::optional<ItemSize> size_of(const MediaItem& item, MediaOptions options) {
  options.limits.max_image_pixels = std::numeric_limits<std::int64_t>::max();
  options.limits.max_image_side_px = std::numeric_limits<std::int64_t>::max();
  options.limits.max_image_bytes = std::numeric_limits<std::size_t>::max();
  options.limits.max_item_bytes = std::numeric_limits<std::size_t>::max();
  try {
    return probe_image(item.content(), item.name, options);
  } catch (const Error&) {
    return std::nullopt;
  }
}

/// The code for an item that is well formed and cannot be encoded.
const char* limit_code(const MediaItem& item, const MediaOptions& options) {
  if (item.modality == Modality::kVideo) return "video_out_of_limits";
  const MediaLimits& limits = options.limits;
  if (item.content().size() > limits.max_image_bytes) return "image_too_large";
  const std::optional<ItemSize> size = size_of(item, options);
  if (!size) return "image_out_of_limits";
  const auto [shorter, longer] = std::minmax({size->width_px, size->height_px});
  if (longer > limits.max_image_side_px || shorter > limits.max_image_pixels / longer) {
    return "image_too_large";
  }
  if (longer > kMaxAspectRatio * shorter) return "aspect_ratio_too_large";
  return "item_too_many_tokens";
}

}  // namespace

ApiError malformed(const std::string& message) { return {400, "invalid_request", message}; }

void refuse(const std::string& param, const std::string& why, const char* code) {
  throw ApiError(400, code, param + ": " + why, param);
}

namespace {

/// A failure of the server itself, whose reason names its files.
ApiError internal_error(const std::string& reason, std::string param = {}) {
  ApiError error(500, "internal", "the server has failed; its log says why, under the request id",
                 std::move(param));
  error.detail = reason;
  return error;
}

}  // namespace

ApiError to_api_error(const Error& error, std::string param) {
  const std::string message = error.what();
  const auto made = [&](int status, const char* code) {
    return ApiError(status, code, message, std::move(param));
  };
  switch (error.code()) {
    case ErrorCode::kInvalidArgument: return made(400, "invalid_value");
    case ErrorCode::kCorruptData: return made(422, "decode_failed");
    case ErrorCode::kNotFound: return made(404, "not_found");
    case ErrorCode::kUnsupported: return made(422, "unsupported_media");
    case ErrorCode::kOutOfMemory: return made(500, "out_of_memory");
    case ErrorCode::kUnavailable: {
      ApiError busy = made(429, "queue_full");
      busy.retry_after_s = 1;
      return busy;
    }
    case ErrorCode::kDevice: return made(500, "device_error");
    case ErrorCode::kCancelled: return made(499, "client_closed_request");
    case ErrorCode::kDeadline: return made(504, "deadline_exceeded");
    case ErrorCode::kIo:
    case ErrorCode::kInternal: break;
  }
  return internal_error(message, std::move(param));
}

ApiError current_api_error() {
  try {
    throw;
  } catch (const ApiError& error) {
    return error;
  } catch (const Error& error) {
    return to_api_error(error);
  } catch (const std::bad_alloc&) {
    ApiError error(503, "out_of_memory", "the server is out of memory");
    error.retry_after_s = 1;
    return error;
  } catch (const std::exception& error) {
    return internal_error(error.what());
  }
}

ApiError item_error(const Error& error, const MediaItem& item, const MediaOptions& options) {
  // Bytes that are no image are of a format that the library does not know; to a client that says
  // they are one, they are a broken image.
  const bool is_of_images =
      item.modality == Modality::kImage || std::holds_alternative<EncodedFrames>(item.source);
  if (error.code() == ErrorCode::kUnsupported && is_of_images) {
    return {422, "decode_failed", error.what(), item.name};
  }
  if (error.code() == ErrorCode::kUnavailable) {  // of its decoder process: nothing is full
    ApiError unavailable(503, "decoder_unavailable", error.what(), item.name);
    unavailable.retry_after_s = 1;
    return unavailable;
  }
  if (error.code() != ErrorCode::kInvalidArgument) return to_api_error(error, item.name);
  return {422, limit_code(item, options), error.what(), item.name};
}

}  // namespace fovea::serve
