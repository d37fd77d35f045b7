#pragma once

#include <span>
#include <string>

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

}  // namespace fovea
