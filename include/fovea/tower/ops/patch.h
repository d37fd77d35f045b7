#pragma once

#include <cstdint>

#include "fovea/export.h"
#include "fovea/tower/core/tensor_view.h"
#include "fovea/tower/ops/context.h"

namespace fovea::ops {

struct PatchifyArgs {
  ConstTensorView pixels;  ///< [bytes] u8: RGB of all images of the batch
  ConstTensorView
      sources;  ///< [rows, 4] i32: byte offset of the patch's first value, bytes from one image row
                ///< to the next, from one frame to the next (0 repeats the frame), and from one
                ///< channel to the next where they are planes, 0 where they are interleaved; live
                ///< patches lie inside pixels, which nobody checks
  ConstTensorView table;  ///< [3, 256] f32 on the device: value of every byte per channel
  std::int64_t patch_size;
  std::int64_t temporal_patch_size;
  LiveRows rows = {};
  TensorView out;  ///< [rows, 3 * temporal_patch_size * patch_size^2], activation dtype
};

/// Cuts images into rows for the GEMM of the patch embedding, and normalises them:
///   out[r, ((c * T + f) * P + py) * P + px] =
///       table[c][pixels[offset_r + f * frame_stride_r + py * row_stride_r + place_r(c, px)]]
///   place_r(c, px) = 3 * px + c, or c * channel_stride_r + px of planes
/// The table holds the reference's float arithmetic for each of the 256 byte values, so the result
/// is exact. Rows beyond the live ones stay as they are on every backend, so that a second call may
/// cut the first rows over with another table. Asynchronous; safe to capture.
/// @throws Error(kInvalidArgument) if a shape or dtype does not match the list above;
/// Error(kUnsupported) on a GPU for patches of more than 40 KiB of pixels.
/// Source: docs/reference/image_resize.md, "Rescale and normalise" and "Patches".
FOVEA_API void patchify(ExecContext& ctx, const PatchifyArgs& args);

struct AddPositionsArgs {
  ConstTensorView table;      ///< [table_height * table_width, cols] f32 on the device: learned
                              ///< embedding of a grid, row by row
  ConstTensorView positions;  ///< [rows, 4] i32: y, x, height, width of the row's grid, in patches
  std::int64_t table_height;
  std::int64_t table_width;
  LiveRows rows = {};
  TensorView x;  ///< [rows, cols], activation dtype, updated in place
};

/// Adds a learned position embedding, bilinearly interpolated to the grid of each row with the
/// corners aligned: x[r] += sum over the 4 neighbours of (y_r, x_r) scaled to the table.
///   position of i on an axis of n patches, with `side` entries of the table (its height or width):
///   linspace(0, side - 1, n)[i] in f32 (0 for n = 1), computed as
///   i * step for i < n / 2, else (side - 1) - (n - 1 - i) * step, step = (side - 1) / (n - 1)
/// Weights and the sum are f32; the sum is rounded to the activation dtype, then added.
/// Asynchronous; safe to capture.
/// @throws Error(kInvalidArgument) if a shape or dtype does not match the list above.
/// Source: docs/reference/qwen_glm.md, "Interpolated positions".
FOVEA_API void add_positions_bilinear(ExecContext& ctx, const AddPositionsArgs& args);

/// The same with corners not aligned and no antialiasing.
///   position of i on an axis of n: max((i + 0.5) * (side / n) - 0.5, 0) in f32, with the `side`
///   entries that the table has on that axis, of which the last stands for those beyond it
/// A grid as large as the table gets the table itself. Weights and the sum are f32; the sum is
/// rounded to the activation dtype, then added. Asynchronous; safe to capture.
/// @throws Error(kInvalidArgument) if a shape or dtype does not match the list above.
/// Source: torch.nn.functional.interpolate with mode "bilinear" (PyTorch 2.11).
FOVEA_API void add_positions_half_pixel(ExecContext& ctx, const AddPositionsArgs& args);

/// The same with bicubic interpolation, corners not aligned and no antialiasing: x[r] += sum over
/// the 4 x 4 neighbours of (y_r, x_r) scaled to the table, whose places outside it count as its
/// edge.
///   position of i on an axis of n: s = (i + 0.5) * (side / n) - 0.5 in f32, t = s - floor(s),
///   with the `side` entries that the table has on that axis
///   places floor(s) - 1 .. floor(s) + 2, weights w(t + 1), w(t), w(1 - t), w(2 - t), A = -0.75:
///   w(d) = (A + 2) d^3 - (A + 3) d^2 + 1 for d <= 1,  A d^3 - 5 A d^2 + 8 A d - 4 A above
/// A grid as large as the table gets the table itself. Weights and the sum are f32; the sum is
/// rounded to the activation dtype, then added. Asynchronous; safe to capture.
/// @throws Error(kInvalidArgument) if a shape or dtype does not match the list above.
/// Source: torch.nn.functional.interpolate with mode "bicubic" (PyTorch 2.11); Keys, "Cubic
/// Convolution Interpolation for Digital Image Processing", IEEE TASSP 1981.
FOVEA_API void add_positions_bicubic(ExecContext& ctx, const AddPositionsArgs& args);

/// The same with bilinear interpolation whose filter widens where a grid is smaller than the table
/// (antialiasing), corners not aligned.
///   scale = side / n, radius = max(scale, 1), centre of i = scale * (i + 0.5), in f32
///   entries k from max(trunc(centre - radius + 0.5), 0) to min(trunc(centre + radius + 0.5), side)
///   of an axis, the last excluded, with weights max(1 - |k + 0.5 - centre| / radius, 0), divided
///   by their sum
/// A grid as large as the table gets the table itself. Weights and the sum are f32; the sum is
/// rounded to the activation dtype, then added. Asynchronous; safe to capture.
/// @throws Error(kInvalidArgument) if a shape or dtype does not match the list above.
/// Source: torch.nn.functional.interpolate with mode "bilinear" and antialias (PyTorch 2.11).
FOVEA_API void add_positions_antialiased(ExecContext& ctx, const AddPositionsArgs& args);

struct InterpolateGridsArgs {
  ConstTensorView x;    ///< [grids * height * width, cols], activation dtype: grids row by row
  std::int64_t height;  ///< of every grid of x, at least 1, as the next three
  std::int64_t width;
  std::int64_t out_height;  ///< of every grid of out
  std::int64_t out_width;
  std::int64_t out_line_rows;  ///< rows of out from one line of a grid to the next, at least
                               ///< out_width: those behind a line are not written
  TensorView out;  ///< [grids * out_height * out_line_rows, cols], activation dtype; no overlap
};

/// Resizes grids of rows bilinearly, corners not aligned and no antialiasing:
///   out[(g * out_height + i) * out_line_rows + j] = sum over the 4 neighbours of the place of
///   (i, j) in grid g of x
/// with positions as those of add_positions_half_pixel. Weights and the sum are f32; one rounding,
/// to the activation dtype. Asynchronous; safe to capture.
/// @throws Error(kInvalidArgument) if a shape or dtype does not match the list above.
/// Source: torch.nn.functional.interpolate with mode "bilinear" (PyTorch 2.11).
FOVEA_API void interpolate_grids(ExecContext& ctx, const InterpolateGridsArgs& args);

struct GatherRowsArgs {
  ConstTensorView x;      ///< [source rows, cols], activation dtype
  ConstTensorView index;  ///< [rows] i32, each in [0, source rows)
  LiveRows rows = {};
  TensorView out;  ///< [rows, cols], activation dtype; no overlap with x
};

/// out[r] = x[index[r]]. Asynchronous; safe to capture.
/// @throws Error(kInvalidArgument) if a shape or dtype does not match the list above.
FOVEA_API void gather_rows(ExecContext& ctx, const GatherRowsArgs& args);

}  // namespace fovea::ops
