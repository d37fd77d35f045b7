#pragma once

#include "checkpoint/hf_config.h"
#include "fovea/options.h"
#include "models/common/grid/moonvit.h"
#include "models/common/grid/processor.h"
#include "models/kimi_vl/config.h"
#include "models/registry.h"

namespace fovea::kimi_vl {

using Weights = common::MoonVitWeights;

/// The list of tensors. Source: docs/reference/kimi_vl.md, "Tensors".
[[nodiscard]] Weights load_weights(common::WeightLoader& loader, const Config& config,
                                   const media::NormalizeTable& normalize);

/// Sizes and scaling of images.
/// @throws Error(kCorruptData) naming the key for wrong types and for sizes that contradict
/// `geometry`, Error(kUnsupported) if images are to be cropped instead of padded.
/// Source: docs/reference/kimi_vl.md, "Processing".
[[nodiscard]] common::GridProcessing read_processing(const checkpoint::HfConfig& files,
                                                     const common::GridGeometry& geometry,
                                                     const MediaOptions& media);

/// Kimi-VL.
[[nodiscard]] const ModelFamily& family() noexcept;

}  // namespace fovea::kimi_vl
