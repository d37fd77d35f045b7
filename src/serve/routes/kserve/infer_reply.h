#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "fovea/embedding.h"
#include "serve/http/message.h"
#include "serve/routes/kserve/infer_request.h"
#include "serve/rows/body_builder.h"

namespace fovea::serve {

/// How the rows of a request are to be made. @param checkpoint type of rows that are not asked for
/// in another one.
[[nodiscard]] RowOptions infer_rows(const InferRequest& request, ElementType checkpoint);

/// How many tensors of the reply hold the rows as JSON: a request may ask for some twice.
[[nodiscard]] std::int64_t rows_as_json(const InferRequest& request);

/// The protocol's name of a type: "FP32", "FP16", "BF16".
[[nodiscard]] const char* kserve_datatype(ElementType type);

/// The reply: JSON, and binary tensors behind it, of which rows that are sent as they are, are not
/// copied. `embeddings` holds the rows of all items one after the other, `num_embeds` how many of
/// them each item has, `grid_thw` the grids, in families that have them.
/// @param items in engine_dtype(rows).
/// @throws ApiError(400, "unsupported_dtype") for JSON of types other than float32, ApiError(400,
/// "response_too_large_for_json"), ApiError(400, "invalid_value") for grids where there are none.
/// Source: Open Inference Protocol, "Inference Response JSON Object"; Triton Inference Server,
/// docs/protocol/extension_binary_data.md.
[[nodiscard]] Reply infer_reply(const InferRequest& request, const RowOptions& rows,
                                const ReplyHead& head,
                                const std::vector<std::shared_ptr<const Embedding>>& items);

}  // namespace fovea::serve
