#pragma once

#include <chrono>
#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "serve/http/message.h"
#include "serve/media/media_source.h"
#include "serve/rows/row_output.h"
#include "serve/text/json.h"
#include "serve/text/schema.h"

namespace fovea::serve {

/// A tensor that a request asks for.
struct InferOutput {
  std::string name;  ///< "embeddings", "num_embeds" or "grid_thw"
  bool binary = false;
};

/// An infer request.
struct InferRequest {
  std::string id;  ///< empty: none
  std::vector<MediaReference> media;
  SharedJson json;                   ///< what the texts of the media refer to; may be null
  std::vector<InferOutput> outputs;  ///< empty: all that there are
  bool binary = false;               ///< of outputs that do not say so themselves
  std::optional<ElementType> type;   ///< absent: that of the checkpoint
  Pooling pooling = Pooling::kNone;
  Deepstack deepstack = Deepstack::kConcat;
  std::optional<std::chrono::microseconds> timeout;
};

/// Reads a body with one input `media`, BYTES: in JSON base64 or URLs, in binary each element with
/// its length in front. All lengths have to be exact.
/// @param body is referred to by the media. @param json_bytes value of the header
/// Inference-Header-Content-Length: bytes of the JSON in front of binary tensors; 0: the body is
/// one item and nothing else; absent: the body is JSON. @param max_items --max-items-per-request.
/// @throws ApiError(400), before anything is made of elements that the shape or `max_items` does
/// not allow.
/// Source: Open Inference Protocol, "Inference Request JSON Object"; Triton Inference Server,
/// docs/protocol/extension_binary_data.md.
[[nodiscard]] InferRequest parse_infer_request(const SharedBytes& body,
                                               std::optional<std::size_t> json_bytes,
                                               std::size_t max_items);

/// The schema of the JSON.
[[nodiscard]] JsonObject infer_schema(SchemaSet& named);

/// The number in that header. @throws ApiError(400, "invalid_value") if it is none.
[[nodiscard]] std::optional<std::size_t> inference_header_length(const Headers& headers);

}  // namespace fovea::serve
