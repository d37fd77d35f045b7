#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <string_view>

#include "fovea/tower/models/inputs.h"

namespace fovea::common {

// Numbers in input buffers, which are i32 there and 64 bits wide everywhere else. None exceeds the
// 32-bit offsets that check_pixel_offsets grants.

[[nodiscard]] constexpr std::int32_t narrow(std::int64_t value) {
  return static_cast<std::int32_t>(value);
}

/// Writes rows of `width` numbers to a buffer, which has one axis if `width` is 1.
/// @throws as InputWriter::claim.
inline void write_numbers(InputWriter& writer, std::string_view name,
                          std::span<const std::int64_t> numbers, std::int64_t width = 1) {
  const TensorView rows = writer.claim(name, std::ssize(numbers) / width);
  std::ranges::transform(numbers, rows.as<std::int32_t>(), narrow);
}

}  // namespace fovea::common
