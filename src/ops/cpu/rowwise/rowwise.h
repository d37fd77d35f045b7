#pragma once

#include "ops/cpu/rowwise/row_kernels.h"
#include "ops/kernels.h"

namespace fovea::cpu {

// Each function submits to a CpuStream and is the body of the function of Kernels with the same
// name, `normalize_heads` and `rotate` the steps of Kernels::head_attention before the attention:
// they change args.qkv in place. Running allocates nothing.

void layer_norm(Stream& stream, const ops::LayerNormArgs& args, NormRows norm_rows);
void rms_norm(Stream& stream, const ops::RmsNormArgs& args, NormRows norm_rows);
void normalize_heads(Stream& stream, const ops::HeadAttentionArgs& args, NormRows norm_rows);

void activate(Stream& stream, const ops::ActivateArgs& args, ActivateRow activate_row);
void gated(Stream& stream, const ops::GatedArgs& args, GateRow gate_row);
void clamp(Stream& stream, const ops::ClampArgs& args);
void copy_row_blocks(Stream& stream, const ops::CopyRowBlocksArgs& args);
void add_table(Stream& stream, const ops::AddTableArgs& args);
void mean_row_blocks(Stream& stream, const ops::MeanRowBlocksArgs& args);

void rope_angles(Stream& stream, const ops::RopeAnglesArgs& args);
void rotate(Stream& stream, const ops::HeadAttentionArgs& args, RotateHeads rotate_heads);

void patchify(Stream& stream, const ops::PatchifyArgs& args);
void add_positions_bilinear(Stream& stream, const ops::AddPositionsArgs& args,
                            AddWeighted4 add_weighted4);
void add_positions_half_pixel(Stream& stream, const ops::AddPositionsArgs& args,
                              AddWeighted4 add_weighted4);
void add_positions_bicubic(Stream& stream, const ops::AddPositionsArgs& args,
                           AddWeighted4 add_weighted4);
void add_positions_antialiased(Stream& stream, const ops::AddPositionsArgs& args,
                               AddWeighted4 add_weighted4);
void interpolate_grids(Stream& stream, const ops::InterpolateGridsArgs& args,
                       AddWeighted4 add_weighted4);
void gather_rows(Stream& stream, const ops::GatherRowsArgs& args);
void im2col_3x3(Stream& stream, const ops::Im2colArgs& args);

}  // namespace fovea::cpu
