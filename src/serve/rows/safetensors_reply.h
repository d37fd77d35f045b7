#pragma once

#include <vector>

#include "serve/http/message.h"
#include "serve/rows/reply_formats.h"

namespace fovea::serve {

/// What is sent of each item, in the order of the items.
using ItemTensors = std::vector<std::vector<RowTensor>>;

/// A safetensors file with the tensors of all items, which refers to them. Its metadata holds
/// `fovea.items`, the members that the items have in a reply of JSON. With TensorNaming::kHf the
/// rows of several items of a modality are joined, which copies them.
[[nodiscard]] Reply safetensors_reply(const OutputOptions& options, const EncodeReplyHead& head,
                                      const std::vector<EncodedItem>& items,
                                      const ItemTensors& tensors);

}  // namespace fovea::serve
