#pragma once

#include <cstddef>
#include <cstdint>

namespace fovea::common {

/// Refuses a sub-batch whose pixels the patch sources, 32-bit offsets, do not reach.
/// @param pixel_bytes of all its items together, on one path.
/// @throws Error(kInvalidArgument) with both numbers.
void check_pixel_offsets(std::int64_t pixel_bytes, std::size_t num_items);

}  // namespace fovea::common
