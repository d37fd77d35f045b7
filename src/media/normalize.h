#pragma once

#include <array>
#include <cstdint>

namespace fovea::media {

/// Value of each byte per channel after rescaling and normalising.
using NormalizeTable = std::array<std::array<float, 256>, 3>;

/// The fused form of the torchvision-backed processors, in f32 with a rounding after every step:
///   (v - mean * (1 / rescale_factor)) / (std * (1 / rescale_factor))
/// Source: docs/reference/image_resize.md, "Rescale and normalise".
[[nodiscard]] NormalizeTable fused_normalize_table(const std::array<float, 3>& mean,
                                                   const std::array<float, 3>& std,
                                                   double rescale_factor);

/// ToTensor and Normalize: (v / 255 - mean) / std in f32.
/// Source: docs/reference/image_resize.md, "Rescale and normalise".
[[nodiscard]] NormalizeTable to_tensor_normalize_table(const std::array<float, 3>& mean,
                                                       const std::array<float, 3>& std);

/// Llama 4's processor, in bf16 with a rounding after every step; the factor stays f32:
///   r = bf16(v * rescale_factor), d = bf16(r - bf16(mean)), bf16(d / bf16(std))
/// Source: docs/reference/image_resize.md, "Rescale and normalise".
[[nodiscard]] NormalizeTable bf16_normalize_table(const std::array<float, 3>& mean,
                                                  const std::array<float, 3>& std,
                                                  double rescale_factor);

}  // namespace fovea::media
