#pragma once

#include <vector>

#include "models/deepseek_ocr/config.h"
#include "models/deepseek_ocr/weights.h"
#include "ops/context.h"

namespace fovea::deepseek_ocr {

/// Rows of one SAM chunk that are live, at each resolution it passes through.
struct ChunkLive {
  LiveRows views;
  LiveRows grid;      ///< views * grid^2
  LiveRows half;      ///< views * (grid / 2)^2
  LiveRows features;  ///< views * (grid / 4)^2
};

/// Inputs of a path's forward, on the device.
struct Inputs {
  ConstTensorView pixels;      ///< [bytes] u8: the views, one after the other
  ConstTensorView sources;     ///< [views * grid^2, 4] i32, see ops::PatchifyArgs
  ConstTensorView cu_seqlens;  ///< [views + 1] i32: CLIP sequences of tokens + 1 rows
  LiveRows views;
  LiveRows clip_rows;  ///< views * (tokens + 1)
  LiveRows tokens;     ///< views * tokens
  LiveRows grid_rows;  ///< views * tokens_side
  std::vector<ChunkLive> chunks;
};

/// Views that pass through SAM together. SAM's activations are large, so their number is bounded;
/// 16 thousand tokens are enough to fill any device.
[[nodiscard]] std::int64_t views_per_chunk(const ViewGeometry& view);

/// One path: bytes of square views in, projected tokens out.
/// @param path 0 or 1: which of the weights' position tables fit the view.
/// @param newlines append a newline row to every row of the token grid (the global path).
/// @param out [views * tokens, n_embed], or with newlines [views * tokens_side * (tokens_side + 1),
/// n_embed].
/// Source: DeepSeek-OCR specification, section 5.
void forward(ExecContext& ctx, const Config& config, const Weights& weights, std::size_t path,
             const ViewGeometry& view, ConstTensorView normalize_table, const Inputs& in,
             bool newlines, TensorView out);

}  // namespace fovea::deepseek_ocr
