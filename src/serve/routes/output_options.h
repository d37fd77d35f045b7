#pragma once

#include "serve/rows/reply_formats.h"
#include "serve/service/service.h"
#include "serve/text/json.h"

namespace fovea::serve {

/// The member `output` of a request; without it what `accept` asks for: safetensors for
/// "application/vnd.safetensors", JSON otherwise. @param accept the header; null: none.
/// @throws ApiError(400): "invalid_value", "unsupported_dtype", "unknown_field".
/// Source: docs/serving.md, "Formats".
[[nodiscard]] OutputOptions read_output(Fields& body, const std::string* accept);

/// Replaces the type "auto": that of the checkpoint, float32 where the format does not hold it.
void choose_dtype(OutputOptions& options, RowDType checkpoint);

/// How one vector is made of an item's rows: "none", "mean", "max", "first" or "last".
[[nodiscard]] Pooling pooling_of(Fields& fields, Pooling otherwise);

/// The treatment of the deepstack levels: a vector is made of the main embedding alone, rows hold
/// the levels beside it, unless the member `deepstack` says "main", "concat" or "split".
[[nodiscard]] Deepstack deepstack_of(Fields& fields, Pooling pooling);

/// As above for a reply of one tensor per item, without "split".
[[nodiscard]] Deepstack vector_deepstack_of(Fields& fields, Pooling pooling);

/// @throws ApiError(400, "vectors_need_language_model") if rows are to be pooled and the checkpoint
/// is an embedding model: its vectors are others.
void check_pooling(const RowOptions& rows, const Service& service);

}  // namespace fovea::serve
