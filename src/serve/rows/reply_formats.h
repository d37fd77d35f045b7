#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "fovea/embedding.h"
#include "serve/http/message.h"
#include "serve/rows/body_builder.h"
#include "serve/rows/row_output.h"

namespace fovea::serve {

/// Bodies of replies of /v1/encode. Source: docs/serving.md, "Formats".
enum class ReplyFormat : std::uint8_t {
  kJson,         ///< nested arrays of numbers
  kBase64,       ///< base64 of the elements, in JSON
  kTorch,        ///< base64 of what torch.save() writes, in JSON
  kNpy,          ///< the file that numpy.save() writes, of one item
  kSafetensors,  ///< a safetensors file
  kRaw,          ///< the elements back to back; the header `metadata` says what is where
};

/// Names of tensors in safetensors.
enum class TensorNaming : std::uint8_t {
  kItems,  ///< item_<i>, item_<i>.grid_thw
  kHf,     ///< image_embeds, image_grid_thw, video_embeds, video_grid_thw: one for all items
};

/// The options that a client gives with `output`.
struct OutputOptions {
  ReplyFormat format = ReplyFormat::kJson;
  bool dtype_is_auto = true;  ///< rows.type is to become that of the checkpoint, or float32 in JSON
  RowOptions rows;
  TensorNaming naming = TensorNaming::kItems;
  /// Members of the items of a reply.
  bool grid = true;
  bool timestamps = false;
  bool part = false;     ///< a content part for vLLM, finished
  bool timings = false;  ///< milliseconds of each stage
};

/// "safetensors", as requests spell it.
[[nodiscard]] std::string_view to_string(ReplyFormat format);

/// @throws ApiError(400) for options that contradict each other: formats that cannot hold an
/// element type ("unsupported_dtype"), a byte order, split rows or more than one item
/// ("invalid_value").
void check_output(const OutputOptions& options, std::size_t items);

/// Bytes of a reply per byte of its rows, beyond the rows themselves, at most.
[[nodiscard]] double reply_factor(const OutputOptions& options);

struct EncodeReplyHead : ReplyHead {
  std::int64_t deepstack_levels = 0;
};

/// An encoded item and how the request called it.
struct EncodedItem {
  std::shared_ptr<const Embedding> embedding;  ///< in engine_dtype(options.rows)
  std::string id;                              ///< empty: none
  std::string uuid;                            ///< empty: none
};

/// What to ask for in place of JSON or headers that would be too large, for messages.
inline constexpr const char* kInsteadOfText = "output.format safetensors";

/// The reply with these items. Rows that are sent as they are, are not copied.
/// @param options dtype_is_auto has been replaced by a type.
/// @throws ApiError as check_output() and make_tensors(), ApiError(400,
/// "response_too_large_for_json", "metadata_header_too_large", "response_too_large").
[[nodiscard]] Reply encode_reply(const OutputOptions& options, const EncodeReplyHead& head,
                                 const std::vector<EncodedItem>& items);

/// The tensors that are sent of each item, in the order of the items.
using ItemTensors = std::vector<std::vector<RowTensor>>;

/// A safetensors file with the tensors of all items, which refers to them. Its metadata holds
/// `fovea.items`, the members that the items have in a reply of JSON. With TensorNaming::kHf the
/// rows of several items of a modality are joined, which copies them.
[[nodiscard]] Reply safetensors_reply(const OutputOptions& options, const EncodeReplyHead& head,
                                      const std::vector<EncodedItem>& items,
                                      const ItemTensors& tensors);

}  // namespace fovea::serve
