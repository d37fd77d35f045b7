#pragma once

#include <array>
#include <vector>

#include "fovea/tower/ops/context.h"
#include "media/normalize.h"
#include "models/common/layers.h"
#include "models/common/views/inputs.h"
#include "models/common/views/sam.h"
#include "models/common/weight_loader.h"
#include "models/deepseek_ocr/config.h"
#include "models/registry.h"

namespace fovea::deepseek_ocr {

struct Clip {
  Tensor class_embedding;                            ///< [1, clip_width] f32
  std::array<Tensor, kNumPaths> position_embedding;  ///< [tokens + 1, clip_width] f32
  common::LayerNorm pre_layrnorm;                    ///< upstream's spelling
  std::vector<common::Block> layers;
};

/// Both towers and what joins them. Move-only; shared read-only by all graphs.
struct Weights {
  common::Sam sam;
  Clip clip;
  ops::PackedLinear projector;  ///< clip_width + feature_width -> n_embed
  Tensor image_newline;         ///< [1, n_embed] f32
  Tensor view_seperator;        ///< [1, n_embed] f32; upstream's spelling
};

/// The whole list of tensors; position tables are resized to the views of both paths.
/// Source: docs/reference/deepseek_ocr.md, "Tensors" and "Position tables".
[[nodiscard]] Weights load_weights(common::WeightLoader& loader, const Config& config,
                                   const Views& views, const media::NormalizeTable& normalize);

/// The inputs of the forward of a path. The sequences are those of CLIP, whose patches are SAM's
/// features.
[[nodiscard]] common::ViewLayout layout_of(const common::SquareView& view, Path path);

/// One path of the encoder, whose position tables fit its views.
struct Tower {
  const Config& config;
  const Weights& weights;
  Path path;
};

/// Bytes of square views in, projected tokens out. Asynchronous on ctx.stream; safe to capture.
/// @param in of layout_of() of the path.
/// @param out global path: [views * tokens_side * (tokens_side + 1), n_embed], a newline row after
/// every row of the token grid; local path: [views * tokens, n_embed].
/// Source: docs/reference/deepseek_ocr.md, "Forward".
void forward(ExecContext& ctx, const Tower& tower, const common::ViewInputs& in, TensorView out);

/// Puts the rows of a part to their place among those of its item: the tiles laid out as the token
/// grid of the whole image, each row of it ended by a newline, which comes with the last tile of
/// the row; the global view, and with it a separator. Asynchronous on ctx.stream.
/// @param rows [tokens of the part, n_embed]. @param out [out_rows of the item, n_embed].
/// Source: docs/reference/deepseek_ocr.md, "Order of rows".
void assemble_part(ExecContext& ctx, const Weights& weights, const Views& views,
                   const ItemPart& part, TensorView rows, TensorView out);

/// DeepSeek-OCR: two towers, a global view and local tiles.
[[nodiscard]] const ModelFamily& family() noexcept;

}  // namespace fovea::deepseek_ocr
