#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "fovea/fovea.h"
#include "support/golden.h"

namespace fovea::test {

/// The checkpoint of a small Qwen3-VL.
inline std::string golden_qwen() { return golden_folder("qwen3_vl", "model.safetensors"); }

/// An engine with one thread on the CPU.
inline Engine load_on_cpu(const std::string& model, EngineOptions options = {}) {
  options.device = "cpu";
  options.num_threads = 1;
  return Engine::load(model, options);
}

/// How many of `most` items of mixed_items.h a test of this family encodes: no more than a small
/// image, one with tiles and another where small images become views of thousands of patches.
inline std::size_t affordable_items(const Engine& engine, std::size_t most) {
  constexpr std::int64_t kLargeView = 2048;  // patches
  constexpr std::size_t kFew = 3;
  const std::vector<std::uint8_t> grey(std::size_t{64} * 64 * 3);
  const std::vector<MediaItem> small{image_rgb(grey, 64, 64, "grey")};
  return engine.plan_items(small)[0].info()->patches < kLargeView ? most : kFew;
}

}  // namespace fovea::test
