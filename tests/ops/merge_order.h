#pragma once

#include <array>
#include <cstdint>
#include <vector>

namespace fovea::test {

/// Patch positions of a grid in merge-block order, merge size 2.
inline std::vector<std::array<std::int32_t, 2>> merge_order(std::int32_t height,
                                                            std::int32_t width) {
  std::vector<std::array<std::int32_t, 2>> out;
  for (std::int32_t block_y = 0; block_y < height / 2; ++block_y) {
    for (std::int32_t block_x = 0; block_x < width / 2; ++block_x) {
      for (std::int32_t y = 0; y < 2; ++y) {
        for (std::int32_t x = 0; x < 2; ++x) out.push_back({2 * block_y + y, 2 * block_x + x});
      }
    }
  }
  return out;
}

}  // namespace fovea::test
