#pragma once

#include <array>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "checkpoint/safetensors.h"
#include "fovea/media.h"
#include "fovea/tower/core/dtype.h"
#include "media/normalize.h"

namespace fovea::test {

/// What the processor returned for one golden image or video.
struct GoldenPixelValues {
  std::vector<float> values;  ///< [patches, patch_dim]
  std::int64_t patches = 0;
  std::int64_t patch_dim = 0;
  std::array<std::int64_t, 3> grid{};
  Modality modality = Modality::kImage;
};

/// Reads `<name>.in.pixel_values[_videos]_u8` and the grid from golden.safetensors of `folder`,
/// and normalises the bytes as the processor does (mean and std 0.5).
inline GoldenPixelValues golden_pixel_values(const std::string& folder, const std::string& name) {
  const checkpoint::SafetensorsFile file(folder + "/golden.safetensors");
  const bool video = name == "video";
  const ConstTensorView bytes =
      file.tensor(name + (video ? ".in.pixel_values_videos_u8" : ".in.pixel_values_u8"));
  const ConstTensorView grid =
      file.tensor(name + (video ? ".in.video_grid_thw" : ".in.image_grid_thw"));
  GoldenPixelValues result;
  result.modality = video ? Modality::kVideo : Modality::kImage;
  result.patches = bytes.shape[0];
  result.patch_dim = bytes.shape[1] * bytes.shape[2];  // channels are separate in the file
  std::memcpy(result.grid.data(), grid.data, sizeof(result.grid));
  const auto table =
      media::fused_normalize_table({0.5f, 0.5f, 0.5f}, {0.5f, 0.5f, 0.5f}, 1.0 / 255);
  const auto plane = static_cast<std::size_t>(bytes.shape[2]);
  result.values.resize(bytes.bytes());
  for (std::size_t i = 0; i < result.values.size(); ++i) {
    result.values[i] = table[i / plane % 3][bytes.as<std::uint8_t>()[i]];
  }
  return result;
}

/// `values` in a float dtype, as bytes.
inline std::vector<std::uint8_t> stored_as(DType dtype, const std::vector<float>& values) {
  std::vector<std::uint8_t> bytes(values.size() * size_of(dtype));
  narrow_from_f32(values.data(), dtype, reinterpret_cast<std::byte*>(bytes.data()), values.size());
  return bytes;
}

}  // namespace fovea::test
