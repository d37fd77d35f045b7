// Rows against rows: equal ones, and those of less precision against those of the same weights as
// they are.
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

struct Closeness {
  double relative;  ///< L2 norm of the difference / L2 norm of the reference
  double cosine;
};

/// Over columns [first, first + count) of all rows of all items.
Closeness closeness(std::span<const Embedding> items, std::span<const Embedding> references,
                    std::int64_t first, std::int64_t count) {
  double difference = 0;
  double product = 0;
  double square = 0;
  double reference_square = 0;
  for (std::size_t i = 0; i < items.size(); ++i) {
    for (std::int64_t r = 0; r < items[i].rows; ++r) {
      for (std::int64_t c = first; c < first + count; ++c) {
        const double got = items[i].at(r, c);
        const double want = references[i].at(r, c);
        difference += (got - want) * (got - want);
        product += got * want;
        square += got * got;
        reference_square += want * want;
      }
    }
  }
  constexpr double kSmallest = 1e-300;  // of rows that are all zero
  return {std::sqrt(difference / std::max(reference_square, kSmallest)),
          product / std::sqrt(std::max(square * reference_square, kSmallest))};
}

std::string text(const Closeness& c, const char* reference) {
  return cat("relative difference ", c.relative, ", cosine ", c.cosine, " against ", reference);
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

std::vector<Check> check_quantization(const char* kind, std::span<const Embedding> rows,
                                      std::span<const ReferenceRows> references,
                                      std::int64_t hidden, double tolerance) {
  const std::int64_t levels = rows.empty() ? 0 : rows.front().width / hidden;
  std::vector<Check> checks;
  for (std::int64_t level = 0; level < levels; ++level) {
    bool passed = true;
    std::string detail;
    for (const ReferenceRows& reference : references) {
      const Closeness close = closeness(rows, reference.items, level * hidden, hidden);
      passed = passed && close.relative <= tolerance;
      detail += cat(text(close, reference.dtype), "; ");
    }
    checks.push_back({level == 0 ? cat(kind, " rows") : cat(kind, " deepstack level ", level - 1),
                      passed, cat(detail, "allowed ", tolerance)});
  }
  return checks;
}

}  // namespace fovea
