#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "fovea/diagnostics.h"
#include "fovea/embedding.h"

namespace fovea {

/// How far two lists of rows are apart.
struct Difference {
  bool same_bits = true;
  double relative = 0;  ///< largest relative L2 difference of an item; infinite where not finite
};

/// Compares item by item. @throws Error(kInternal) if the shapes of two items differ.
[[nodiscard]] Difference compare(std::span<const Embedding> a, std::span<const Embedding> b);

/// @param tolerance of the relative difference; 0: bits must be equal.
[[nodiscard]] Check check_equal(std::string name, const Difference& difference, double tolerance);

/// Rows of the same items in more precision.
struct ReferenceRows {
  const char* dtype;  ///< that they were computed in
  std::span<const Embedding> items;
};

/// What quantization, or GEMMs in bf16, change: for the main rows and every deepstack level,
/// relative L2 difference and cosine against every reference, over all items. Passed where they are
/// within the tolerance.
/// @param kind first word of the names of the checks. @param hidden width of a level.
/// @param tolerance of the relative L2 difference.
[[nodiscard]] std::vector<Check> check_quantization(const char* kind,
                                                    std::span<const Embedding> rows,
                                                    std::span<const ReferenceRows> references,
                                                    std::int64_t hidden, double tolerance);

}  // namespace fovea
