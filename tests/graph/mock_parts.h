#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "fovea/tower/device/device.h"

namespace fovea::test {

/// A count or an index as the standard library takes it.
[[nodiscard]] inline std::size_t to_size(std::int64_t value) {
  return static_cast<std::size_t>(value);
}

/// Numbers in [-1, 1) that depend on `seed` alone.
[[nodiscard]] std::vector<float> random_floats(std::size_t count, std::uint64_t seed);

/// Pixels of an item, `elements` random numbers: u8 if `bytes`, else the f32 of random_floats.
[[nodiscard]] std::vector<std::uint8_t> random_pixels(std::size_t elements, bool bytes,
                                                      std::uint64_t seed);

/// Submits a closure where a kernel would be launched. Streams that only measure drop it.
void submit_closure(Stream& stream, std::function<void()> work);

}  // namespace fovea::test
