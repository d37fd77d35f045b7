#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "fovea/export.h"
#include "fovea/options.h"

namespace fovea {

/// What `media_io_kwargs` of vLLM ask of the way in which media are read, as far as an item can
/// have it.
struct MediaIo {
  std::optional<double> fps;  ///< at which videos are sampled: MediaItem::fps
};

/// Reads `media_io_kwargs` as vLLM has them: a JSON object such as {"video": {"fps": 1}}. Of videos
/// `fps` is honoured, and a `num_frames` of -1, which asks for no other number of frames: the
/// processor's own rule chooses them, and takes a number as `num_frames` of mm_processor_kwargs.
/// Of images, what they are decoded to anyhow may be repeated: `image_mode` "RGB", and the
/// `rgba_background_color` of `media`.
/// @param name of the text, for messages.
/// @throws Error(kInvalidArgument) for what is no such object, Error(kUnsupported) for what cannot
/// be honoured; both begin with the path of the member, "NAME: video.num_frames: ".
[[nodiscard]] FOVEA_API MediaIo read_media_io_kwargs(std::string_view json, const std::string& name,
                                                     const MediaOptions& media = {});

/// Whether bytes begin as an image of a format that is known, whether or not this build reads it.
[[nodiscard]] FOVEA_API bool begins_as_image(std::span<const std::uint8_t> bytes) noexcept;

}  // namespace fovea
