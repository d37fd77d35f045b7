#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <iosfwd>
#include <optional>
#include <span>

#include "fovea/export.h"

namespace fovea {

/// Highest rank of a tensor; the checkpoints of the supported families need 5.
inline constexpr int kMaxRank = 8;

/// Product of two non-negative sizes, or nothing when it does not fit into 63 bits.
[[nodiscard]] FOVEA_API std::optional<std::int64_t> checked_mul(std::int64_t a,
                                                                std::int64_t b) noexcept;

/// Sum of two non-negative sizes, or nothing when it does not fit into 63 bits.
[[nodiscard]] FOVEA_API std::optional<std::int64_t> checked_add(std::int64_t a,
                                                                std::int64_t b) noexcept;

/// Sizes of a contiguous row-major tensor, outermost first. Every size is >= 0; rank 0 is a scalar.
class FOVEA_API Shape {
 public:
  Shape() = default;
  /// @throws Error(kInvalidArgument) if there are more than kMaxRank sizes or one is negative.
  Shape(std::initializer_list<std::int64_t> sizes);
  explicit Shape(std::span<const std::int64_t> sizes);

  [[nodiscard]] int rank() const noexcept { return rank_; }
  [[nodiscard]] std::int64_t operator[](int axis) const {
    return sizes_[static_cast<std::size_t>(axis)];
  }
  [[nodiscard]] std::span<const std::int64_t> sizes() const noexcept {
    return {sizes_.data(), static_cast<std::size_t>(rank_)};
  }
  /// Number of elements: the product of the sizes, 1 for rank 0.
  /// @throws Error(kInvalidArgument) on overflow.
  [[nodiscard]] std::int64_t elements() const;

  friend bool operator==(const Shape& a, const Shape& b) noexcept = default;

 private:
  std::array<std::int64_t, kMaxRank> sizes_{};  // unused entries stay 0, so == is memberwise
  int rank_ = 0;
};

/// Prints "[2, 3]".
FOVEA_API std::ostream& operator<<(std::ostream& out, const Shape& shape);

}  // namespace fovea
