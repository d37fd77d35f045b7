#pragma once

#include <optional>
#include <string>

#include "fovea/media.h"
#include "serve/media/media_source.h"
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

/// Reads the two members of a body; `processor_kwargs` and options beside them are refused.
/// `rgba_background_color` and `image_mode` of images are options of the engine, which a request
/// may only repeat.
/// @throws ApiError(400, "invalid_value") that names the member.
[[nodiscard]] ProcessingOptions read_processing_options(Fields& body, const Service& service);

/// Adds options to an item, as MediaItem::mm_processor_kwargs has them; those that it has already
/// come before them. @param where path of `kwargs` in the request.
/// @throws ApiError(400, "invalid_value") for what is no object.
void add_item_options(const JsonView& kwargs, const std::string& where, MediaReference& reference);

/// Reads the options that stand in a part of a conversation, or in the object of its URL:
/// `mm_processor_kwargs`, and members as clients and qwen-vl-utils call them.
/// @param are_taken whether the route honours them.
/// @throws ApiError(400, "invalid_value") that names the first if it does not.
void take_item_options(Fields& part, bool are_taken, MediaReference& reference);

/// Whether this server's model takes the options of an item.
/// @throws ApiError(400, "invalid_value") that names the option, with what the model takes.
void check_item_options(const MediaReference& reference, const Service& service);

/// Gives an item the options of its request, unless it has others, and checks all that it has then.
/// @throws as check_item_options.
void apply_options(const ProcessingOptions& options, const Service& service,
                   MediaReference& reference);

}  // namespace fovea::serve
