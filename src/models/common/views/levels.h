#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "models/common/geometry.h"
#include "models/common/layers.h"
#include "models/common/processor_file.h"
#include "models/common/weight_loader.h"

namespace fovea::common {

/// Turns a patch embedding over pixels into one over their levels in media::kLevelBytes bytes, the
/// frames of a patch. A level is sum_p b_p / 256^p; normalised, with n(b) of the table of bytes, it
/// is
///   sum_p n(b_p) / 256^p + mean / std * sum_{p > 0} 1 / 256^p
/// so byte p has the weights of its pixel / 256^p, and the constant goes into the bias.
/// @param weight [features, 3, patch_px^2], becomes [features, 3, kLevelBytes, patch_px^2].
/// @param bias [features]. Source: docs/reference/step3_vl.md, "Pixels".
void split_levels(std::int64_t patch_px, const std::array<float, 3>& mean,
                  const std::array<float, 3>& std, std::vector<float>& weight,
                  std::vector<float>& bias);

/// The patch embedding of views that are bytes, or of several planes, levels.
/// @param name of a convolution with a bias.
[[nodiscard]] PatchEmbedding load_patch_embedding(WeightLoader& loader, const std::string& name,
                                                  std::int64_t features, const SquareView& view,
                                                  const PixelScaling& scaling);

}  // namespace fovea::common
