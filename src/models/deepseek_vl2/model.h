#pragma once

#include "fovea/tower/ops/context.h"
#include "media/normalize.h"
#include "models/common/layers.h"
#include "models/common/views/inputs.h"
#include "models/common/views/siglip.h"
#include "models/common/weight_loader.h"
#include "models/deepseek_vl2/config.h"
#include "models/registry.h"

namespace fovea::deepseek_vl2 {

/// The tower on a device. Move-only; shared read-only by all graphs.
struct Weights {
  common::SiglipTower vision;
  common::LayerNorm norm;
  common::Mlp projector;  ///< of 3 x 3 patches, those above and on the left with weights of 0
  Tensor image_newline;   ///< [1, n_embed] f32
  Tensor view_seperator;  ///< [1, n_embed] f32; upstream's spelling
};

/// The whole list of tensors. Source: docs/reference/deepseek_vl2.md, "Tensors".
[[nodiscard]] Weights load_weights(common::WeightLoader& loader, const Config& config,
                                   const media::NormalizeTable& normalize);

/// The inputs of the forward.
[[nodiscard]] common::ViewLayout layout_of(const Config& config);

/// Bytes of square views in, projected tokens out. Asynchronous on ctx.stream; safe to capture.
/// @param out [views * tokens, n_embed]. Source: docs/reference/deepseek_vl2.md, "Forward".
void forward(ExecContext& ctx, const Config& config, const Weights& weights,
             const common::ViewInputs& in, TensorView out);

/// Puts the rows of a part to their place among those of its item: the global view with a newline
/// behind each of its rows, a separator, which comes with it, and the tiles laid out as the token
/// grid of the whole image, each row of it ended by a newline, which comes with its last tile.
/// Asynchronous on ctx.stream. @param rows [tokens of the part, n_embed]. @param out [out_rows of
/// the item, n_embed]. Source: docs/reference/deepseek_vl2.md, "Order of rows".
void assemble_part(ExecContext& ctx, const Config& config, const Weights& weights,
                   const ItemPart& part, TensorView rows, TensorView out);

/// DeepSeek-VL2.
[[nodiscard]] const ModelFamily& family() noexcept;

}  // namespace fovea::deepseek_vl2
