#include "serve/service/item_error.h"

#include <algorithm>
#include <limits>
#include <optional>

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
