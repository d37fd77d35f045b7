#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "fovea/embedding.h"
#include "fovea/export.h"
#include "fovea/media.h"
#include "fovea/row_block.h"

// Rows as tensors of DLPack, the C structure in which array libraries hand memory to each other
// without copying it. Who reads its members includes <dlpack/dlpack.h>, of any version.
struct DLManagedTensor;

namespace fovea {

/// The rows of an embedding as a tensor [rows, width] on the host, without a copy. The tensor owns
/// them until its deleter is called, by the consumer or by the caller.
/// @throws Error(kInvalidArgument) for an embedding with an error, or whose rows are elsewhere.
[[nodiscard]] FOVEA_API DLManagedTensor* to_dlpack(Embedding&& rows);
/// A block, on the host or a GPU, as a tensor [rows, width], without a copy. On a GPU the consumer
/// orders its work with the stream that encode() was called with.
/// @param owner of the memory, which the tensor keeps until its deleter is called.
/// @throws Error(kInvalidArgument) for a block that is no memory of rows of this width.
[[nodiscard]] FOVEA_API DLManagedTensor* to_dlpack(const RowBlock& block, std::int64_t width,
                                                   std::shared_ptr<const void> owner);

/// The memory of a tensor [rows, width] of float32, float16 or bfloat16 as a destination. Refers to
/// it: the tensor stays the caller's and must outlive what is done with the block. Pinned memory is
/// host memory, managed memory is that of its GPU.
/// @throws Error(kInvalidArgument) for another shape, columns that do not lie one after the other,
/// another element type, Error(kUnsupported) for another kind of device.
[[nodiscard]] FOVEA_API RowBlock row_block(const DLManagedTensor& tensor, std::int64_t width);
/// Such a tensor as finished rows of an item (precomputed_rows of a RowBlock).
/// @throws as row_block, for whatever width the tensor has.
[[nodiscard]] FOVEA_API MediaItem precomputed_rows(const DLManagedTensor& tensor, std::string name);

}  // namespace fovea
