#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "fovea/tower/models/encoder_graph_model.h"
#include "fovea/tower/ops/context.h"
#include "media/normalize.h"
#include "models/common/grid/inputs.h"
#include "models/common/layers.h"
#include "models/common/weight_loader.h"
#include "models/hunyuan_vl/config.h"
#include "models/registry.h"

namespace fovea::hunyuan_vl {

/// The layers from rows of a token grid to rows of the language model (vit.perceive.*).
struct Projector {
  common::RmsNorm before_rms;  ///< of patches, before they are joined
  common::Mlp conv;            ///< joined_width -> 2 hidden_size -> 4 hidden_size: a convolution
                               ///< whose stride is its size, and one of 1 x 1
  Tensor image_newline;        ///< [1, 4 hidden_size] f32
  ops::PackedLinear mlp;       ///< 4 hidden_size -> text_hidden_size
  Tensor image_begin;          ///< [1, text_hidden_size] f32
  Tensor image_end;            ///< [1, text_hidden_size] f32
  common::RmsNorm after_rms;   ///< of all rows
};

/// The tower on a device. Move-only; shared read-only by all graphs.
struct Weights {
  common::PatchEmbedding patch_embedding;
  Tensor position_embedding;  ///< [position_side^2, hidden_size] f32
  common::BlockSequence blocks;
  Projector perceive;
};

/// The whole list of tensors, by name and shape. Source: docs/reference/hunyuan_vl.md, "Tensors".
[[nodiscard]] Weights load_weights(common::WeightLoader& loader, const Config& config,
                                   const media::NormalizeTable& normalize);

/// Rows that no patch makes come before those of the tokens, once for all items of a batch.
enum Separator : std::int32_t { kBegin, kEnd, kNewline, kNumSeparators };

/// The inputs beside GridInputs: where every row of the result comes from.
struct RowInputs {
  ConstTensorView row_sources;  ///< [rows] i32: a Separator, or kNumSeparators + a token
  LiveRows rows;                ///< of the result
  LiveRows mixed_rows;          ///< tokens and all separators
  LiveRows projected_rows;      ///< tokens and the newline, which pass through the projector

  // As common::PlainGridModel says. The tokens of a capacity are rows.
  [[nodiscard]] static std::vector<BufferDecl> declare(const Config& config,
                                                       const GraphCapacity& capacity);
  /// @throws Error(kUnavailable) if a buffer holds less.
  static void fill(const Config& config, std::span<const common::GridRun> runs,
                   const common::PatchTables& rows, InputWriter& writer);
  [[nodiscard]] static RowInputs of(const NamedTensors& in);
};

/// The tower: bytes in, rows out. Asynchronous on ctx.stream; safe to capture.
/// @param out [rows, text_hidden_size]: of each item begin, the rows of its token grid with a
/// newline behind each, end. Source: docs/reference/hunyuan_vl.md, "Forward".
void forward(ExecContext& ctx, const Config& config, const Weights& weights,
             const common::GridInputs& in, const RowInputs& rows, TensorView out);

/// HunyuanOCR.
[[nodiscard]] const ModelFamily& family() noexcept;

}  // namespace fovea::hunyuan_vl
