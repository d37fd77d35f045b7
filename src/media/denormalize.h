#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "fovea/tower/core/dtype.h"
#include "media/normalize.h"

namespace fovea::media {

/// Inverts a NormalizeTable: finds the byte that a value was made from. A value belongs to a byte
/// if it differs from the byte's table value by at most 1/1024 of the distance between two bytes,
/// both ends of that interval rounded to the dtype of the values. This tolerates any order of
/// roundings in the reference (they differ by 1/20000 of that distance), and rejects values that
/// were not made from bytes.
class Denormalizer {
 public:
  /// @param table of normalize.h. @param dtype kF32, kF16 or kBF16.
  Denormalizer(const NormalizeTable& table, DType dtype);

  /// Writes the byte of values[i] to out[i]. If a 16-bit dtype is too coarse to
  /// distinguish two bytes, it is one of the two.
  /// @return the number of values before the first that belongs to no byte; values.size() if all
  /// do.
  [[nodiscard]] std::size_t bytes_of(std::size_t channel, std::span<const float> values,
                                     std::uint8_t* out) const;

  /// The byte whose value is next to `value`, for messages; 0 for NaN.
  [[nodiscard]] std::uint8_t nearest_byte(std::size_t channel, float value) const;

 private:
  struct Channel {
    float zero = 0;            ///< value of byte 0
    float bytes_per_unit = 0;  ///< inverse of the distance between two bytes
    std::array<float, 256> low{};
    std::array<float, 256> high{};
  };
  [[nodiscard]] static int guess(const Channel& channel, float value);
  std::array<Channel, 3> channels_;
};

}  // namespace fovea::media
