#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "fovea/diagnostics.h"
#include "fovea/embedding.h"

namespace fovea {

/// Rows of the same items that are not quantized.
struct ReferenceRows {
  const char* dtype;  ///< that they were computed in
  std::span<const Embedding> items;
};

/// What quantization changes: for the main rows and every deepstack level, relative L2 difference
/// and cosine against every reference, over all items. Passed where they are within the tolerance.
/// @param hidden width of a level.
/// @param tolerance of the relative L2 difference.
[[nodiscard]] std::vector<Check> check_quantization(std::span<const Embedding> quantized,
                                                    std::span<const ReferenceRows> references,
                                                    std::int64_t hidden, double tolerance);

}  // namespace fovea
