#pragma once

#include <cstddef>
#include <set>
#include <string>
#include <vector>

#include "serve/media/media_source.h"
#include "serve/rows/row_output.h"
#include "serve/text/json.h"

namespace fovea::serve {

/// A body of /v2/embed.
struct EmbedRequest {
  SharedJson json;                    ///< what the media refer to
  std::vector<MediaReference> media;  ///< a vector each
  std::set<std::string> types;        ///< of the embeddings: "float", "base64"
  RowOptions rows;
};

/// Reads a body with `images`, a list of URLs, or `inputs`, a list of contents with one image or
/// video each. Members that mean nothing here are ignored. @param max_items
/// --max-items-per-request.
/// @throws ApiError(400): "missing_field", "invalid_value", "text_not_supported",
/// "multiple_media_in_conversation", "too_many_items".
/// Source: Cohere, API reference, "Embed (V2)".
[[nodiscard]] EmbedRequest parse_embed_request(const SharedJson& body, std::size_t max_items);

}  // namespace fovea::serve
