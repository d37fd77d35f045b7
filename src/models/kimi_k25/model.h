#pragma once

#include "checkpoint/hf_config.h"
#include "fovea/options.h"
#include "models/common/grid/moonvit.h"
#include "models/common/grid/processor.h"
#include "models/kimi_k25/config.h"
#include "models/registry.h"

namespace fovea::kimi_k25 {

/// The list of tensors. Source: docs/reference/kimi_vl.md, "Kimi-K2.5".
[[nodiscard]] common::MoonVitWeights load_weights(common::WeightLoader& loader,
                                                  const Config& config,
                                                  const media::NormalizeTable& normalize);

/// Sizes, sampling and scaling of images and videos: media_proc_cfg of published files, or the
/// files that transformers writes.
/// @throws Error(kCorruptData) naming the key for wrong types and for sizes that contradict
/// `geometry`, Error(kUnsupported) for fixed numbers of tokens and for other steps than those of
/// the reference's classes. Limits that depend on the length of a video are no error but
/// processing.video_refusal. Source: docs/reference/kimi_vl.md, "Kimi-K2.5".
[[nodiscard]] common::GridProcessing read_processing(const checkpoint::HfConfig& files,
                                                     const common::GridGeometry& geometry,
                                                     const MediaOptions& media);

/// Kimi-K2.5.
[[nodiscard]] const ModelFamily& family() noexcept;

}  // namespace fovea::kimi_k25
