#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "core/json_writer.h"
#include "fovea/embedding.h"
#include "fovea/row_formats.h"
#include "serve/rows/reply_formats.h"

namespace fovea::serve {

/// Rows of all items.
[[nodiscard]] std::int64_t count_rows(std::span<const std::shared_ptr<const Embedding>> items);

/// Sums over items, whose stages overlap.
[[nodiscard]] StageTimes total(std::span<const std::shared_ptr<const Embedding>> items) noexcept;

/// {"read": .., ...} in milliseconds.
[[nodiscard]] JsonObject stages_json(const StageTimes& times);

/// The description of an item in a reply, without its numbers: {"index": .., "modality": ..,
/// "shape": ..}.
[[nodiscard]] JsonObject item_json(const OutputOptions& options, const EncodeReplyHead& head,
                                   const EncodedItem& item, std::size_t index,
                                   const RowTensor& tensor);

/// Appends a finished content part for a request to vLLM: {"type": "image_embeds", ..}. Grids are
/// tensors, which all versions of vLLM take; only newer ones take lists.
/// @param tensor its rows, as they came from the engine.
void append_vllm_part(const EncodedItem& item, const RowTensor& tensor, std::string& out);

/// Base64 of what torch.save() writes for a tensor.
/// @throws ApiError(400, "response_too_large") for 4 GiB and more.
[[nodiscard]] std::string torch_base64(const StoredTensor& tensor);

/// A tensor for the writers of files. @param tensor of float32, float16 or bfloat16; stays.
[[nodiscard]] StoredTensor stored(const RowTensor& tensor, std::string name = {});

}  // namespace fovea::serve
