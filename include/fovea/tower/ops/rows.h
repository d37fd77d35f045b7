#pragma once

#include <cstdint>

#include "fovea/export.h"
#include "fovea/tower/core/tensor_view.h"
#include "fovea/tower/ops/context.h"

namespace fovea::ops {

struct CopyRowBlocksArgs {
  ConstTensorView x;          ///< [blocks * x_block_rows, cols], activation dtype; see x_block_rows
  std::int64_t x_block_rows;  ///< rows of a block in x; 0: x is a constant [x_first + count, cols]
                              ///< f32 on the device, the same for every block
  std::int64_t x_first = 0;   ///< first row copied of every block of x
  std::int64_t count;         ///< rows copied per block
  LiveRows blocks = {};       ///< live blocks
  TensorView out;             ///< [blocks * out_block_rows, out_cols], activation dtype; no overlap
  std::int64_t out_block_rows;  ///< rows of a block in out
  std::int64_t out_first = 0;   ///< first row written of every block of out
  std::int64_t out_column = 0;  ///< first column written; out_column + cols <= out_cols
};

/// Copies runs of rows between tensors cut into blocks of different lengths:
///   out[b * out_block_rows + out_first + i, out_column + c] = x[b * x_block_rows + x_first + i, c]
/// for i < count. Inserts and drops class tokens, appends newline rows, joins columns.
/// Asynchronous on ctx.stream; safe to capture.
/// @throws Error(kInvalidArgument) if a shape or dtype does not match the list above.
FOVEA_API void copy_row_blocks(ExecContext& ctx, const CopyRowBlocksArgs& args);

struct AddTableArgs {
  ConstTensorView table;  ///< [period, cols] f32 on the device
  LiveRows rows = {};
  TensorView x;  ///< [rows, cols], activation dtype, updated in place
};

/// x[r, c] += table[r mod period, c], in f32, one rounding: position embeddings of images of one
/// size. Asynchronous on ctx.stream; safe to capture.
/// @throws Error(kInvalidArgument) if a shape or dtype does not match the list above.
FOVEA_API void add_table(ExecContext& ctx, const AddTableArgs& args);

struct MeanRowBlocksArgs {
  ConstTensorView x;        ///< [blocks * block_rows, cols], activation dtype
  std::int64_t block_rows;  ///< rows of a block, at least 1
  LiveRows blocks = {};     ///< live blocks
  TensorView out;           ///< [blocks, cols], activation dtype; no overlap with x
  /// Where blocks differ: [blocks, 4] i32 on the device: first row of a block in x, its rows, at
  /// least 1, the distance from one to the next, unused. Live blocks lie inside x, which nobody
  /// checks; x then has any number of rows, and block_rows is the most that a block has.
  ConstTensorView runs = {};
  ConstTensorView bias = {};   ///< [cols] f32 on the device, or neither this nor scale
  ConstTensorView scale = {};  ///< [cols] f32 on the device
};

/// out[b, c] = mean[b, c], or (mean[b, c] - bias[c]) * scale[c] where there are these two
/// mean[b, c] = (sum_i x[b * block_rows + i, c]) / block_rows, i < block_rows and ascending
/// or with runs
/// mean[b, c] = (sum_i x[first_b + i * distance_b, c]) / rows_b, i < rows_b and ascending
/// In f32, one rounding, to the activation dtype: average pooling, over rows that are neighbours or
/// at equal distances. Asynchronous on ctx.stream; safe to capture.
/// @throws Error(kInvalidArgument) if a shape or dtype does not match the list above.
FOVEA_API void mean_row_blocks(ExecContext& ctx, const MeanRowBlocksArgs& args);

}  // namespace fovea::ops
