#pragma once

#include <cstddef>
#include <cstdint>

#include "device/cuda/cuda_stream.h"
#include "fovea/tower/ops/context.h"
#include "fovea/tower/ops/grid.h"

namespace fovea::cuda {

/// Bodies of Kernels::grid_attention and Kernels::grid_attention_workspace.
/// @param hopper whether the Hopper kernel may be used where it can.
void grid_attention(const Submission& submission, const ops::GridAttentionArgs& args, bool hopper,
                    int num_sms);
[[nodiscard]] std::size_t grid_attention_workspace(const ops::GridAttentionArgs& args, bool hopper);

/// Grid attention as the kernels see it. Without windows, the whole image is one.
struct GridWork {
  const std::byte* qkv;      ///< [images * height * width, 3, num_heads, head_dim] bf16
  const float* pad_qkv;      ///< [3, num_heads, head_dim]
  const float* rel_pos_h;    ///< [2 * side_h - 1, head_dim]
  const float* rel_pos_w;    ///< [2 * side_w - 1, head_dim]
  const std::int32_t* live;  ///< images, on the device, or null
  int images;
  int height;
  int width;
  int side_h;  ///< of a window
  int side_w;
  int windows_y;
  int windows_x;
  int num_heads;
  int head_dim;  ///< a multiple of 8, at most 128
  float scale;   ///< >= 0; other scales are applied to the queries in q k^T:
  std::uint32_t query_keep = 0xffffffffu;  ///< mask of two queries: 0 for scale 0
  std::uint32_t query_flip = 0;            ///< bits to invert: the signs for a negative scale
  std::byte* out;                          ///< [images * height * width, num_heads, head_dim] bf16
  std::byte* workspace = nullptr;          ///< of the Hopper kernel
};

/// Any head dim and window, with the tensor-core instructions of every GPU since Ampere.
void launch_grid_attention_mma(CudaStream& stream, const GridWork& work);

/// WGMMA, for whole images and heads of 64.
bool has_grid_attention_wgmma(const GridWork& work);
/// Bytes of its workspace.
std::size_t grid_attention_wgmma_workspace(const GridWork& work);
void launch_grid_attention_wgmma(CudaStream& stream, const GridWork& work, int num_sms);

}  // namespace fovea::cuda
