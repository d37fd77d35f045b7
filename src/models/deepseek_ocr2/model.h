#pragma once

#include <array>
#include <vector>

#include "fovea/tower/ops/context.h"
#include "media/normalize.h"
#include "models/common/layers.h"
#include "models/common/views/inputs.h"
#include "models/common/views/sam.h"
#include "models/common/weight_loader.h"
#include "models/deepseek_ocr2/config.h"
#include "models/registry.h"

namespace fovea::deepseek_ocr2 {

/// All towers and what joins them. Move-only; shared read-only by all graphs.
struct Weights {
  common::Sam sam;
  Tensor inv_freq;                         ///< [head_dim / 2] f32
  std::array<Tensor, kNumPaths> queries;   ///< [tokens of a view, hidden_size] f32
  std::vector<common::GatedBlock> layers;  ///< of the decoder
  common::RmsNorm norm;
  ops::PackedLinear projector;  ///< hidden_size -> n_embed
  Tensor view_seperator;        ///< [1, n_embed] f32; upstream's spelling
};

/// The whole list of tensors. Source: docs/reference/deepseek_ocr2.md, "Tensors".
[[nodiscard]] Weights load_weights(common::WeightLoader& loader, const Config& config,
                                   const Views& views, const media::NormalizeTable& normalize);

/// The inputs of the forward of a path. A sequence is the features of a view and its queries.
[[nodiscard]] common::ViewLayout layout_of(const common::SquareView& view);

/// One path of the encoder.
struct Tower {
  const Config& config;
  const Weights& weights;
  Path path;
};

/// Bytes of square views in, projected outputs of the queries out. Asynchronous on ctx.stream; safe
/// to capture.
/// @param in of layout_of() of the view of the path.
/// @param positions [rows of all sequences, 4] i32: the place of a row in its sequence, twice.
/// @param out [views * tokens, n_embed]. Source: docs/reference/deepseek_ocr2.md, "Forward".
void forward(ExecContext& ctx, const Tower& tower, const common::ViewInputs& in,
             ConstTensorView positions, TensorView out);

/// DeepSeek-OCR 2.
[[nodiscard]] const ModelFamily& family() noexcept;

}  // namespace fovea::deepseek_ocr2
