#pragma once

#include <optional>
#include <vector>

#include "fovea/tower/ops/context.h"
#include "media/normalize.h"
#include "models/common/grid/inputs.h"
#include "models/common/layers.h"
#include "models/common/weight_loader.h"
#include "models/mistral3/config.h"
#include "models/registry.h"

namespace fovea::mistral3 {

/// Joins merge_area patches into one row of the tower's width.
struct PatchMerger {
  common::RmsNorm norm;     ///< of patches
  ops::PackedLinear layer;  ///< patches of a token side by side -> hidden_size
};

/// The tower on a device. Move-only; shared read-only by all graphs.
struct Weights {
  Tensor inv_freq;  ///< [head_dim / 2] f32
  common::PatchEmbedding patch_conv;
  common::RmsNorm ln_pre;
  std::vector<common::GatedBlock> blocks;
  std::optional<PatchMerger> merger;  ///< not of Pixtral
  common::Mlp projector;              ///< hidden_size -> text_hidden_size, twice
};

/// The whole list of tensors, by name and shape. Source: docs/reference/mistral3.md, "Tensors" and
/// "Rotary positions".
[[nodiscard]] Weights load_weights(common::WeightLoader& loader, const Config& config,
                                   const media::NormalizeTable& normalize);

/// The tower: bytes in, rows out. Asynchronous on ctx.stream; safe to capture.
/// @param out [tokens, text_hidden_size]. Source: docs/reference/mistral3.md, "Forward".
void forward(ExecContext& ctx, const Config& config, const Weights& weights,
             const common::GridInputs& in, TensorView out);

/// Mistral 3.
[[nodiscard]] const ModelFamily& family() noexcept;
/// Pixtral, whose architecture LLaVA has with other towers.
[[nodiscard]] const ModelFamily& pixtral_family() noexcept;
/// LightOnOCR, whose tensors have other names.
[[nodiscard]] const ModelFamily& light_on_ocr_family() noexcept;

}  // namespace fovea::mistral3
