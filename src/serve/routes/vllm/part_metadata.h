#pragma once

#include <string_view>

#include "core/json_writer.h"
#include "fovea/embedding.h"

namespace fovea::serve {

/// The facts that a consumer of rows without pixels gets about the items of a family, so that it
/// can count the placeholders of a prompt. Source: vLLM 0.33, `embedding_fields` of the parsers of
/// vllm/model_executor/models; docs/serving.md, "Encoder of vLLM".
enum class MetadataRule : std::uint8_t {
  kNone,               ///< nothing would do: the consumer needs the pixels
  kGrid,               ///< the grid
  kGridAndTimestamps,  ///< the grid, and of videos the times, too
};
[[nodiscard]] MetadataRule metadata_rule(std::string_view family);

/// {"image_grid_thw": [t, h, w]}, {"video_grid_thw": [..], "timestamps": [..]}: lists are flat. An
/// empty object where the rule says nothing, or the item lacks what it asks for.
[[nodiscard]] JsonObject part_metadata(MetadataRule rule, const Embedding& item);

}  // namespace fovea::serve
