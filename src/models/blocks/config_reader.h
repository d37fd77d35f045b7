#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "core/json.h"
#include "models/blocks/grid/geometry.h"

namespace fovea::blocks {

/// Largest sizes that are taken from a file: far above every published tower, and low enough for
/// products of sizes to stay below 63 bits.
inline constexpr std::int64_t kMaxSize = std::int64_t{1} << 20;
inline constexpr std::int64_t kMaxDepth = 1024;

/// A number in [1, most]; `fallback` where the key is absent. Some files write a list of one or two
/// equal numbers, whose first is taken.
/// @throws Error(kCorruptData) naming the key for anything else.
[[nodiscard]] std::int64_t read_size(const JsonView& object, std::string_view key,
                                     std::int64_t fallback, std::int64_t most = kMaxSize);

/// The same of a value that is there. @throws as read_size.
[[nodiscard]] std::int64_t as_size(const JsonView& value, std::int64_t most = kMaxSize);

/// The numbers of `list`, indexes of blocks of a tower of `depth` blocks.
/// @throws Error(kCorruptData) for anything else, and for more indexes than there are blocks.
[[nodiscard]] std::vector<std::int64_t> read_block_indexes(const JsonView& list,
                                                           std::int64_t depth);

/// Patches and tokens of `vision`, under patch_size or spatial_patch_size, and spatial_merge_size.
/// @param defaults where a key is absent; its temporal_patch_size is the only one supported.
/// @throws Error(kCorruptData) for sizes out of bounds, Error(kUnsupported) for other than 3
/// channels or another temporal_patch_size.
[[nodiscard]] GridGeometry read_grid_geometry(const JsonView& vision, GridGeometry defaults);

/// vision.rope_parameters.rope_theta. @throws Error(kCorruptData) for anything but a number above
/// 0.
[[nodiscard]] double read_rope_theta(const JsonView& vision, double fallback);

/// Requires that `width` divides into `heads` heads of whole vectors of 8 elements, which kernels
/// work on.
/// @param object where the numbers come from, for the message.
/// @throws Error(kCorruptData) if it does not divide, Error(kUnsupported) for another head size.
void check_heads(const JsonView& object, std::int64_t width, std::int64_t heads);

}  // namespace fovea::blocks
