#pragma once

#include <cstdint>
#include <random>
#include <string>

#include "fovea/fovea.h"
#include "support/golden.h"
#include "support/property.h"

namespace fovea::test {

/// An image of random pixels, the same for the same seed.
inline MediaItem noise(std::int64_t width, std::int64_t height, unsigned seed) {
  std::mt19937 random(seed);
  return image_rgb(random_bytes(static_cast<std::size_t>(width * height * 3), random), width,
                   height, "noise " + std::to_string(seed));
}

/// The tiny Qwen3-VL on the CPU, with an encoder cache of so many bytes.
inline Engine load_cached(std::int64_t cache_bytes) {
  return Engine::load(golden_folder("qwen3_vl", "golden.safetensors"),
                      {.device = "cpu", .num_threads = 2, .encoder_cache_bytes = cache_bytes});
}

}  // namespace fovea::test
