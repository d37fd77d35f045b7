#pragma once

#include <cuda.h>

#include <array>
#include <cstddef>
#include <cstdint>

namespace fovea::cuda {

/// An array of up to four dims, innermost first, and the tiles of it that TMA copies.
struct TiledArray {
  static constexpr std::size_t kMostDims = 4;

  const std::byte* data;       ///< a multiple of 16, as all strides in bytes
  std::int64_t element_bytes;  ///< 2: bf16, 1: E4M3
  unsigned dims;
  std::array<std::int64_t, kMostDims> sizes;
  std::array<std::int64_t, kMostDims - 1> strides;  ///< of the outer dims, in elements
  std::array<int, kMostDims> tile;
};

/// Describes arrays to TMA, by a function of the driver, which this plugin does not link.
class TensorMaps {
 public:
  /// @throws Error(kUnsupported) if the driver is too old to have the function.
  TensorMaps();

  /// Rows of tiles of 128 and 64 bytes are swizzled: they would lie in few banks.
  [[nodiscard]] CUtensorMap describe(const TiledArray& array) const;

 private:
  using Encode = CUresult (*)(CUtensorMap*, CUtensorMapDataType, cuuint32_t, void*,
                              const cuuint64_t*, const cuuint64_t*, const cuuint32_t*,
                              const cuuint32_t*, CUtensorMapInterleave, CUtensorMapSwizzle,
                              CUtensorMapL2promotion, CUtensorMapFloatOOBfill);

  Encode encode_ = nullptr;
};

}  // namespace fovea::cuda
