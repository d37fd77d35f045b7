#pragma once

#include "device/cuda/cuda_stream.h"
#include "fovea/tower/ops/activate.h"
#include "fovea/tower/ops/context.h"
#include "fovea/tower/ops/grid.h"
#include "fovea/tower/ops/norm.h"
#include "fovea/tower/ops/patch.h"
#include "fovea/tower/ops/projected_attention.h"
#include "fovea/tower/ops/rows.h"
#include "ops/quantized.h"

namespace fovea::cuda {

/// The ops whose rows do not depend on each other: bodies of the functions of Kernels with the same
/// names. Asynchronous; safe to capture. num_sms is that of the stream's device.
/// @throws Error(kUnsupported) for activations that are not bf16.

void layer_norm(CudaStream& stream, const ops::LayerNormArgs& args, int num_sms);
void rms_norm(CudaStream& stream, const ops::RmsNormArgs& args, int num_sms);
void activate(CudaStream& stream, const ops::ActivateArgs& args, int num_sms);
void gated(CudaStream& stream, const ops::GatedArgs& args, int num_sms);
void clamp(CudaStream& stream, const ops::ClampArgs& args, int num_sms);
void rope_angles(CudaStream& stream, const ops::RopeAnglesArgs& args, int num_sms);
void patchify(CudaStream& stream, const ops::PatchifyArgs& args, int num_sms);
void add_positions_bilinear(CudaStream& stream, const ops::AddPositionsArgs& args, int num_sms);
void add_positions_half_pixel(CudaStream& stream, const ops::AddPositionsArgs& args, int num_sms);
void add_positions_bicubic(CudaStream& stream, const ops::AddPositionsArgs& args, int num_sms);
void add_positions_antialiased(CudaStream& stream, const ops::AddPositionsArgs& args, int num_sms);
void interpolate_grids(CudaStream& stream, const ops::InterpolateGridsArgs& args, int num_sms);
void gather_rows(CudaStream& stream, const ops::GatherRowsArgs& args, int num_sms);
void copy_row_blocks(CudaStream& stream, const ops::CopyRowBlocksArgs& args, int num_sms);
void add_table(CudaStream& stream, const ops::AddTableArgs& args, int num_sms);
void mean_row_blocks(CudaStream& stream, const ops::MeanRowBlocksArgs& args, int num_sms);
void im2col_3x3(CudaStream& stream, const ops::Im2colArgs& args, int num_sms);

/// The norms of head_attention as a kernel of their own: of q and k, and v, of args.qkv, in place.
void normalize_heads(CudaStream& stream, const ops::HeadAttentionArgs& args, int num_sms);
/// The rotation of head_attention as a kernel of its own: of q and k of args.qkv, in place.
void rotate(CudaStream& stream, const ops::HeadAttentionArgs& args, int num_sms);

/// out[r, c] = x[r, c] / scale[r], rounded to E4M3, with scale[r] = max |x[r, :]| / 448, or 1 for a
/// row of zeros. Rows that are not live are not written. Asynchronous; safe to capture.
/// @param x [rows, cols] bf16 at a multiple of 16 bytes, cols a multiple of 16.
void quantize_rows(CudaStream& stream, ConstTensorView x, LiveRows rows,
                   const ops::QuantizedRows& out, int num_sms);

}  // namespace fovea::cuda
