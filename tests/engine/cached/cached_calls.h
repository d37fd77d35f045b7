#pragma once

// Engines with an encoder cache, and what their calls are compared by. The device memory of a CPU
// is host memory.
#include <gtest/gtest.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "engine/cached/noise.h"
#include "fovea/fovea.h"
#include "support/golden.h"

namespace fovea {

inline constexpr std::int64_t kAmple = std::int64_t{64} << 20;

/// What the cache has to keep rows in.
struct Memory {
  std::int64_t device_bytes = 0;
  std::int64_t host_bytes = 0;
};

inline constexpr Memory kHost{0, kAmple};
inline constexpr Memory kDevice{kAmple, 0};

inline std::string name_of(const Memory& memory) {
  return memory.device_bytes > 0 ? "device" : "host";
}

inline Engine load_with_cache(const std::string& model, const Memory& memory,
                              EngineOptions options = {}) {
  options.device = "cpu";
  options.num_threads = 2;
  options.encoder_cache_bytes = memory.host_bytes;
  options.encoder_device_cache_size = memory.device_bytes;
  return Engine::load(model, options);
}

inline Engine load_with_cache(const Memory& memory, const EngineOptions& options = {}) {
  return load_with_cache(test::golden_folder("qwen3_vl", "golden.safetensors"), memory, options);
}

inline void expect_same_items(std::span<const Embedding> got, std::span<const Embedding> expected) {
  ASSERT_EQ(got.size(), expected.size());
  for (std::size_t i = 0; i < got.size(); ++i) {
    EXPECT_EQ(got[i].data, expected[i].data) << i;
    EXPECT_EQ(got[i].rows, expected[i].rows);
    EXPECT_EQ(got[i].width, expected[i].width);
    EXPECT_EQ(got[i].dtype, expected[i].dtype);
    EXPECT_EQ(got[i].name, expected[i].name);
    EXPECT_EQ(got[i].modality, expected[i].modality);
    EXPECT_EQ(got[i].grid_thw, expected[i].grid_thw);
    EXPECT_EQ(got[i].retained, expected[i].retained);
    EXPECT_EQ(got[i].timestamps, expected[i].timestamps);
    EXPECT_EQ(got[i].num_frames, expected[i].num_frames);
    EXPECT_EQ(got[i].source_width_px, expected[i].source_width_px);
    EXPECT_EQ(got[i].resized_height_px, expected[i].resized_height_px);
    EXPECT_EQ(got[i].error.has_value(), expected[i].error.has_value());
  }
}

inline std::int64_t encoded(const Engine& engine) {
  const Stats stats = engine.stats();
  return stats.graph_hits + stats.graph_partial + stats.graph_misses;
}

inline std::filesystem::path image_path() {
  return std::filesystem::path(FOVEA_TEST_GOLDEN_DIR) / "qwen3_vl/images/photo_180x180.jpg";
}

/// Of another image.
inline std::filesystem::path other_path() {
  return image_path().parent_path() / "noise_101x61.png";
}

inline std::vector<std::uint8_t> bytes_of(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

/// An image of which only the header is whole.
inline MediaItem half_an_image(const std::string& name) {
  std::vector<std::uint8_t> jpeg = bytes_of(image_path());
  jpeg.resize(jpeg.size() / 2);
  return image_bytes(std::move(jpeg), name);
}

inline std::vector<MediaItem> three_of_two() {
  return {test::noise(64, 96, 1), test::noise(96, 64, 2), test::noise(64, 96, 1)};
}

}  // namespace fovea
