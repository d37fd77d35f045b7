#pragma once

#include <variant>

#include "fovea/tower/models/encoder_graph_model.h"
#include "fovea/tower/ops/context.h"
#include "media/normalize.h"
#include "models/common/layers.h"
#include "models/common/views/clip.h"
#include "models/common/views/siglip.h"
#include "models/common/weight_loader.h"
#include "models/llava/config.h"
#include "models/registry.h"

namespace fovea::llava {

/// Tower and projector. Move-only; shared read-only by all graphs.
struct Weights {
  std::variant<common::ClipTower, common::SiglipTower> tower;
  common::Mlp projector;  ///< hidden_size -> text_hidden_size, twice
  Tensor image_newline;   ///< [1, text_hidden_size] f32, not of LLaVA 1.5
};

/// The whole list of tensors, by name and shape. Source: docs/reference/llava.md, "Tensors".
[[nodiscard]] Weights load_weights(common::WeightLoader& loader, const Config& config,
                                   const media::NormalizeTable& normalize);

/// Bytes of square views in, projected patches out. Asynchronous on ctx.stream; safe to capture.
/// @param in of clip_layout or siglip_layout of config.tower. @param out [views * patches,
/// text_hidden_size]. Source: docs/reference/llava.md, "Forward".
void forward(ExecContext& ctx, const Config& config, const Weights& weights,
             const common::ViewInputs& in, TensorView out);

/// Puts the rows of views to their places in an item, and newlines beside them: those of an image
/// come with its first view, that of a video with its last. Asynchronous on ctx.stream.
/// @param rows [views of the part * patches, text_hidden_size]. @param out rows of the whole item.
/// Source: docs/reference/llava.md, "Rows".
void assemble_part(ExecContext& ctx, const Config& config, const Weights& weights,
                   const ItemPart& part, TensorView rows, TensorView out);

/// LLaVA 1.5, whose architecture Pixtral has as well, LLaVA-NeXT and LLaVA-OneVision.
[[nodiscard]] const ModelFamily& family() noexcept;
[[nodiscard]] const ModelFamily& next_family() noexcept;
[[nodiscard]] const ModelFamily& onevision_family() noexcept;

}  // namespace fovea::llava
