#pragma once

#include <optional>
#include <string>

#include "fovea/media.h"
#include "serve/service/service.h"
#include "serve/text/json.h"

namespace fovea::serve {

/// The options of a request for the processing of its media: `mm_processor_kwargs` and
/// `media_io_kwargs` of vLLM. Refers to the body.
struct ProcessingOptions {
  std::optional<JsonView> mm_processor_kwargs;  ///< absent or not empty
  std::optional<JsonView> image_io_kwargs;      ///< likewise
  std::optional<JsonView> video_io_kwargs;      ///< likewise
  std::optional<double> fps;  ///< at which videos are sampled; absent: as MediaReference has it

  [[nodiscard]] const std::optional<JsonView>& io_kwargs(Modality modality) const {
    return modality == Modality::kImage ? image_io_kwargs : video_io_kwargs;
  }
  /// Whether there are any for media of this kind.
  [[nodiscard]] bool concern(Modality modality) const {
    return mm_processor_kwargs || io_kwargs(modality);
  }
};

/// Refuses options of a family's processor other than those of the engine: `min_pixels`,
/// `max_pixels` and `size` may be repeated. @param where path of `kwargs` in the request.
/// @throws ApiError(400, "invalid_value") with what this server encodes with.
void check_processor_kwargs(const JsonView& kwargs, const std::string& where,
                            const Service& service);

/// Refuses members that would change how media are processed where they are not read: in a part of
/// a conversation, in the object of its URL, and at the top of a body; `max_pixels` and its like.
/// @throws ApiError(400, "invalid_value") that names the member.
void refuse_processing_members(Fields& fields);

/// Reads the two members, and refuses their members where they stand beside them. The engine is
/// given its options when it is loaded, so that a request may only repeat them: `min_pixels`,
/// `max_pixels` and `size` of the processor, `rgba_background_color` and `image_mode` of images.
/// `fps` of videos is free.
/// @throws ApiError(400, "invalid_value") for all else, with what this server encodes with: rows of
/// other options than the client believes would be wrong unnoticed.
[[nodiscard]] ProcessingOptions read_processing_options(Fields& body, const Service& service);

}  // namespace fovea::serve
