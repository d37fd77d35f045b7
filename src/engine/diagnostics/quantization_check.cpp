// Rows of less precision against those of the same weights as they are.
#include "engine/diagnostics/quantization_check.h"

#include <algorithm>
#include <cmath>

#include "core/check.h"

namespace fovea {

namespace {

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
