// Shapes: sizes from outside are multiplied with overflow checks.
#include "fovea/tower/core/shape.h"

#include <algorithm>
#include <ostream>

#include "core/check.h"

namespace fovea {

std::optional<std::int64_t> checked_mul(std::int64_t a, std::int64_t b) noexcept {
  std::int64_t product = 0;
  if (a < 0 || b < 0 || __builtin_mul_overflow(a, b, &product)) return std::nullopt;
  return product;
}

std::optional<std::int64_t> checked_add(std::int64_t a, std::int64_t b) noexcept {
  std::int64_t sum = 0;
  if (a < 0 || b < 0 || __builtin_add_overflow(a, b, &sum)) return std::nullopt;
  return sum;
}

Shape::Shape(std::initializer_list<std::int64_t> sizes)
    : Shape(std::span(sizes.begin(), sizes.size())) {}

Shape::Shape(std::span<const std::int64_t> sizes) {
  FOVEA_CHECK(sizes.size() <= kMaxRank, kInvalidArgument, "shape has rank ", sizes.size(),
              ", at most ", kMaxRank, " is supported");
  for (const std::int64_t size : sizes) {
    FOVEA_CHECK(size >= 0, kInvalidArgument, "shape has a negative size ", size);
  }
  std::copy(sizes.begin(), sizes.end(), sizes_.begin());
  rank_ = static_cast<int>(sizes.size());
}

std::int64_t Shape::elements() const {
  std::int64_t product = 1;
  for (const std::int64_t size : sizes()) {
    const auto next = checked_mul(product, size);
    FOVEA_CHECK(next.has_value(), kInvalidArgument, "shape ", *this,
                " has more elements than 63 bits hold");
    product = *next;
  }
  return product;
}

std::ostream& operator<<(std::ostream& out, const Shape& shape) {
  out << '[';
  for (int axis = 0; axis < shape.rank(); ++axis) out << (axis == 0 ? "" : ", ") << shape[axis];
  return out << ']';
}

}  // namespace fovea
