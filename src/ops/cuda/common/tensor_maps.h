#pragma once

#include <cuda.h>

namespace fovea::cuda {

/// cuTensorMapEncodeTiled of the driver, which this plugin does not link: describes a matrix to
/// TMA.
using EncodeTiles = CUresult (*)(CUtensorMap*, CUtensorMapDataType, cuuint32_t, void*,
                                 const cuuint64_t*, const cuuint64_t*, const cuuint32_t*,
                                 const cuuint32_t*, CUtensorMapInterleave, CUtensorMapSwizzle,
                                 CUtensorMapL2promotion, CUtensorMapFloatOOBfill);

/// @throws Error(kUnsupported) if the driver is too old to have it.
[[nodiscard]] EncodeTiles find_encode_tiles();

}  // namespace fovea::cuda
