#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "fovea/diagnostics.h"
#include "fovea/embedding.h"

namespace fovea {

/// Rows of the same items in the order of precision.
struct RowsByPrecision {
  std::span<const Embedding> quantized;
  std::span<const Embedding> bfloat16;
  std::span<const Embedding> float32;
};

/// What quantization changes: for the main rows and every deepstack level, relative L2 difference
/// and cosine against both others, over all items. Passed where they are within the tolerance.
/// @param hidden width of a level.
/// @param tolerance of the relative L2 difference.
[[nodiscard]] std::vector<Check> check_quantization(const RowsByPrecision& rows,
                                                    std::int64_t hidden, double tolerance);

}  // namespace fovea
