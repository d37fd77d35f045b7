#pragma once

#include <cstddef>
#include <set>
#include <string>
#include <vector>

#include "serve/media/media_source.h"
#include "serve/routes/processing_options.h"
#include "serve/rows/row_output.h"
#include "serve/text/json.h"

namespace fovea::serve {

/// A body of /v2/embed.
struct EmbedRequest {
  SharedJson json;  ///< what the media and options refer to
  std::string model;
  std::vector<MediaReference> media;  ///< a vector each
  std::set<std::string> types;        ///< of the embeddings: "float", "base64"
  RowOptions rows;
  ProcessingMembers processing;  ///< options of all media, still to be read
};

/// Reads a body with `images`, a list of URLs, or `inputs`, a list of contents with one image or
/// video each. Members that mean nothing here are ignored. @param max_items
/// --max-items-per-request.
/// @throws ApiError(400): "missing_field", "invalid_value", "text_not_supported",
/// "multiple_media_in_conversation", "too_many_items".
/// Source: Cohere, API reference, "Embed (V2)".
[[nodiscard]] EmbedRequest parse_embed_request(const SharedJson& json, std::size_t max_items);

/// The schema of the body.
[[nodiscard]] JsonObject embed_schema(SchemaSet& named);

}  // namespace fovea::serve
