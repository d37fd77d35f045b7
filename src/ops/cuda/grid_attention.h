#pragma once

#include <cuda_bf16.h>

#include <cstdint>

#include "device/cuda/cuda_stream.h"

namespace fovea::cuda {

/// Grid attention as the kernels see it; the image as a whole is a window where there are none.
struct GridWork {
  const __nv_bfloat16* qkv;  ///< [images * height * width, 3, num_heads, head_dim]
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
  float scale;   ///< > 0; other scales are moved to the queries that are multiplied with keys:
  std::uint32_t query_keep = 0xffffffffu;  ///< bits of two queries that count: none for scale 0
  std::uint32_t query_flip = 0;            ///< bits to invert: the signs for a negative scale
  __nv_bfloat16* out;                      ///< [images * height * width, num_heads, head_dim]
};

/// Any head dim and window: tensor-core instructions of one warp.
void launch_grid_attention_mma(CudaStream& stream, const GridWork& work);

}  // namespace fovea::cuda
