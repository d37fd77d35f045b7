#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "core/dtype.h"
#include "media/normalize.h"

namespace fovea::media {

/// The way back through a NormalizeTable: which byte has this value? A value belongs to a byte when
/// it lies within 1/1024 of the distance between two bytes around the table's value, both ends
/// rounded to the dtype in which values come. So a byte is found whatever the order of the
/// reference's roundings (they differ by 1/20000 of that distance), and a value that never was a
/// byte is not taken for one.
class Denormalizer {
 public:
  /// @param table of normalize.h. @param dtype kF32, kF16 or kBF16.
  Denormalizer(const NormalizeTable& table, DType dtype);

  /// Writes the byte of values[i] to out[i * stride]. Where a 16-bit dtype is too coarse to tell
  /// two bytes apart it is one of the two.
  /// @return how many values were bytes before the first that is none; values.size() if all are.
  [[nodiscard]] std::size_t bytes_of(std::size_t channel, std::span<const float> values,
                                     std::uint8_t* out, std::size_t stride) const;

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
