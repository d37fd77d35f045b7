#pragma once

#include <cstdint>

#include "fovea/export.h"
#include "fovea/tower/core/tensor_view.h"
#include "fovea/tower/ops/context.h"

namespace fovea::ops {

struct GridAttentionArgs {
  ConstTensorView qkv;      ///< [images * height * width, 3 * num_heads * head_dim], activation
                            ///< dtype: q | k | v, heads contiguous; rows of an image row-major
  ConstTensorView pad_qkv;  ///< [3 * num_heads * head_dim] f32: q | k | v of a token of zeros, that
                            ///< is the bias of the projection; read only where windows overhang
  ConstTensorView rel_pos_h;  ///< [2 * side_h - 1, head_dim] f32, side_h = window or height
  ConstTensorView rel_pos_w;  ///< [2 * side_w - 1, head_dim] f32, side_w = window or width
  std::int64_t height;        ///< tokens of an image
  std::int64_t width;
  std::int64_t window;  ///< side of the square windows; 0: one window is the whole image
  std::int64_t num_heads;
  std::int64_t head_dim;
  float scale;
  LiveRows images = {};  ///< live images
  TensorView out;        ///< [images * height * width, num_heads * head_dim]; no overlap with qkv
};

/// Softmax attention with decomposed relative positions, inside windows of a grid of tokens:
///   logit(p, p') = scale * q_p . k_p' + q_p . rel_pos_h[y_p - y_p' + side_h - 1]
///                                     + q_p . rel_pos_w[x_p - x_p' + side_w - 1]
///   out_p = sum_p' softmax_p'(logit(p, p')) v_p'
/// over the tokens p' of p's window, coordinates counted inside the window, q unscaled in the bias.
/// Windows start at the top left corner. Where the last ones overhang the image they contain tokens
/// of zeros, whose keys and values are pad_qkv and which take part in the softmax like any other;
/// their own outputs are not computed. Neither scores nor biases are stored as a whole. A window
/// gives the same bits alone and among others (CPU). Backends that multiply in a narrow type round
/// rel_pos_* and pad_qkv to it; scores and biases stay f32. Asynchronous; safe to capture.
/// @throws Error(kInvalidArgument) if a shape or dtype does not match the list above, or if qkv or
/// out does not begin at a multiple of 16 bytes on a GPU; Error(kUnsupported) on a GPU for heads of
/// more than 128 dims and for windows whose biases exceed the shared memory of a CTA.
/// Source: docs/reference/deepseek_ocr.md, "Windowed attention" and "Relative positions".
FOVEA_API void grid_attention(ExecContext& ctx, const GridAttentionArgs& args);

struct Im2colArgs {
  ConstTensorView x;  ///< [images * height * width, channels], activation dtype, row-major images
  std::int64_t height;
  std::int64_t width;
  std::int64_t stride;  ///< 1 or 2
  LiveRows rows = {};   ///< live rows of out
  TensorView out;  ///< [images * out_h * out_w, 9 * channels], out_h = (height - 1) / stride + 1
};

/// Rows of a 3 x 3 convolution with one pixel of zeros around the image, so that a GEMM computes
/// it:
///   out[(n, y, x), (ky * 3 + kx) * channels + c] = x[(n, y * stride + ky - 1, x * stride + kx -
///   1), c]
/// Asynchronous; safe to capture.
/// @throws Error(kInvalidArgument) if a shape or dtype does not match the list above.
FOVEA_API void im2col_3x3(ExecContext& ctx, const Im2colArgs& args);

}  // namespace fovea::ops
