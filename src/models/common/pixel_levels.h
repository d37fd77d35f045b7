#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "media/normalize.h"
#include "media/resize/resize_fine.h"
#include "models/common/processor_file.h"

namespace fovea::common {

// Patch embeddings over pixels whose grey levels are no whole numbers: ops::patchify reads each of
// the media::kLevelBytes bytes of a level as a frame, and what normalising does is in the weights.

/// The value b - 128 of every byte, which all dtypes of activations hold exactly.
[[nodiscard]] media::NormalizeTable level_table();

/// For WeightLoader::linear_from: turns a patch embedding over normalised pixels, [out, 3 *
/// patch_pixels], channel by channel, into one over values of level_table(), [out, 3 * kLevelBytes
/// * patch_pixels], and moves what is constant into the bias. With levels l = first + step sum_p
/// b_p / 256^p, and normalised values (l factor - mean) / std:
///   w_p = w step factor / std / 256^p
///   bias += sum w ((first + 128 step sum_p 1 / 256^p) factor - mean) / std
[[nodiscard]] std::function<void(std::vector<float>& weight, std::vector<float>& bias)>
split_levels(std::int64_t patch_pixels, const media::LevelScale& levels,
             const PixelScaling& scaling);

}  // namespace fovea::common
