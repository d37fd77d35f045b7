// Rows against rows.
#include "engine/diagnostics/compare.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "core/check.h"

namespace fovea {

namespace {

double relative_difference(const Embedding& item, const Embedding& expected) {
  double difference = 0;
  double reference = 0;
  for (std::int64_t r = 0; r < item.rows; ++r) {
    for (std::int64_t c = 0; c < item.width; ++c) {
      const double want = expected.at(r, c);
      difference += (item.at(r, c) - want) * (item.at(r, c) - want);
      reference += want * want;
    }
  }
  const double relative = std::sqrt(difference / std::max(reference, 1e-300));
  return std::isfinite(relative) ? relative : INFINITY;
}

}  // namespace

Difference compare(std::span<const Embedding> a, std::span<const Embedding> b) {
  Difference result;
  for (std::size_t i = 0; i < a.size(); ++i) {
    FOVEA_CHECK(a[i].rows == b[i].rows && a[i].width == b[i].width, kInternal, a[i].name, ": ",
                a[i].rows, "x", a[i].width, " against ", b[i].rows, "x", b[i].width);
    if (a[i].data == b[i].data) continue;
    result.same_bits = false;
    result.relative = std::max(result.relative, relative_difference(a[i], b[i]));
  }
  return result;
}

Check check_equal(std::string name, const Difference& difference, double tolerance) {
  const bool passed = difference.same_bits || difference.relative <= tolerance;
  return {std::move(name), passed,
          difference.same_bits
              ? "equal bits"
              : cat("relative difference ", difference.relative, ", allowed ", tolerance)};
}

}  // namespace fovea
