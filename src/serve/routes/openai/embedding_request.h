#pragma once

#include <string>
#include <vector>

#include "serve/media/media_source.h"
#include "serve/routes/conversation.h"
#include "serve/routes/encode_call.h"
#include "serve/routes/processing_options.h"
#include "serve/rows/row_output.h"
#include "serve/rows/vector_reply.h"
#include "serve/text/json.h"

namespace fovea::serve {

/// The two routes that share their bodies.
enum class EmbeddingRoute : std::uint8_t {
  kEmbeddings,  ///< /v1/embeddings: a vector for each item
  kPooling,     ///< /pooling: the rows of each item
};

/// A body of these routes.
struct EmbeddingRequest {
  SharedJson json;  ///< what the media and options refer to
  std::string model;
  std::vector<MediaReference> media;  ///< a vector each
  VectorForm form;
  RowOptions rows;
  ProcessingMembers processing;  ///< options of all media, still to be read
};

/// Reads a body: `messages` or `input`, which is a URL, a list of URLs, a conversation or a list of
/// conversations. Members that mean nothing here are ignored.
/// @throws ApiError(400): "text_not_supported" for input that is text or tokens, and for
/// conversations without media; "multiple_media_in_conversation" unless `per_item`;
/// "missing_field", "invalid_value", "unsupported_dtype", "too_many_items", "too_many_images",
/// "too_many_videos".
/// Source: vLLM, vllm/entrypoints/pooling/embed/protocol.py; docs/serving.md, "Embeddings".
[[nodiscard]] EmbeddingRequest parse_embedding_request(const SharedJson& json, EmbeddingRoute route,
                                                       const CallLimits& limits = {});

/// The schemas of the bodies of the two routes.
[[nodiscard]] JsonObject embedding_schema(SchemaSet& named);
[[nodiscard]] JsonObject pooling_schema(SchemaSet& named);

}  // namespace fovea::serve
