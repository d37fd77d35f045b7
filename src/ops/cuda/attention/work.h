#pragma once

#include <cstdint>

#include "device/cuda/cuda_stream.h"

namespace fovea::cuda {

/// Attention as the kernels see it. Sequence s covers rows [cu_seqlens[s], cu_seqlens[s + 1]) for
/// s < *live_seqs (or max_seqs where there is no count); rows after the last one are not written.
struct AttentionWork {
  std::byte* qkv;                  ///< [rows, 3, num_heads, head_dim] bf16
  const std::int32_t* cu_seqlens;  ///< [max_seqs + 1]
  const std::int32_t* live_seqs;   ///< on the device, or null
  int max_seqs;
  int rows;
  int num_heads;
  int head_dim;                      ///< a multiple of 8, at most 128
  float scale;                       ///< > 0; other scales are applied to the operands:
  std::uint32_t keep = 0xffffffffu;  ///< mask of two queries or keys: 0 for scale 0
  std::uint32_t flip = 0;      ///< bits to invert in one of them: the signs, for a negative scale
  std::byte* out;              ///< [rows, num_heads, head_dim] bf16
  std::byte* workspace;        ///< of the Hopper kernel (attention/packing.h) or of cuDNN
  const float* cos = nullptr;  ///< [rows, head_dim / 2], aligned to 16 bytes: the Hopper
  const float* sin = nullptr;  ///< kernel rotates q and k with them, if there are any
};

inline constexpr int kMaxAttentionHeadDim = 128;
inline constexpr std::uint32_t kBf16SignBits = 0x80008000u;  ///< of a pair

/// Any head dim up to 128, with the tensor-core instructions of every GPU since Ampere. The faster
/// one for short sequences, and the reference for the other kernel.
void launch_attention_mma(CudaStream& stream, const AttentionWork& work);

/// WGMMA, for long sequences. Keys and values must have been packed.
bool has_attention_wgmma(const AttentionWork& work);
void launch_attention_wgmma(CudaStream& stream, const AttentionWork& work, int num_multiprocessors);

}  // namespace fovea::cuda
