#pragma once

#include <climits>
#include <cstdint>

#include "device/cuda/cuda_stream.h"
#include "ops/cuda/common/packed_heads.h"

namespace fovea::cuda {

/// Attention as the kernels see it. Rows that no sequence covers are not written.
struct AttentionWork : PackedHeads {
  /// [rows, 3, num_heads, head_dim] bf16. Of a team: queries, [rows, num_heads, head_dim]
  std::byte* qkv = nullptr;
  float scale = 1;                   ///< > 0; other scales are applied to the operands:
  std::uint32_t keep = 0xffffffffu;  ///< mask of two queries or keys: 0 for scale 0
  std::uint32_t flip = 0;  ///< bits to invert in one of them: the signs, for a negative scale
  /// [rows, num_heads, head_dim] bf16. Of a team: [team.rows, team.size, num_heads, head_dim]
  std::byte* out = nullptr;
  /// If there are both, out is values of quantized rows (ops/quantized.h), of which these are the
  /// scales and the norms. Behind heads of E4M3 alone.
  float* out_scale = nullptr;
  float* out_norm = nullptr;
  int prefix_rows = INT_MAX;  ///< ops::Sequences::prefix_rows; the portable kernel alone reads it
  int max_seqlen = 0;         ///< of a sequence, at most
};

inline constexpr int kMaxAttentionHeadDim = 128;
/// The scale of all rows of a quantized result, known before they are: a row lies between the
/// values that it is made of, which are E4M3 themselves. Numbers from 2^-8 to 112 keep their
/// precision, larger ones become 112.
inline constexpr float kQuantizedResultScale = 0.25f;
inline constexpr std::uint32_t kBf16SignBits = 0x80008000u;  ///< of a pair

/// Any head dim up to 128 and any mask, with the tensor-core instructions of every GPU since
/// Ampere. The faster one for short sequences, and the reference for the other kernel.
void launch_attention_mma(CudaStream& stream, const AttentionWork& work);

/// Packs heads into work.workspace, in work.format, rotated if there are angles: keys and values,
/// and queries of E4M3. Queries of bf16 are rotated in place.
void launch_attention_packing(CudaStream& stream, const AttentionWork& work);

/// The head dims that the Hopper kernels are compiled for.
using HopperHeadDims = HeadDims<64, 72, 80, 88, 96, 112, 128>;

/// WGMMA, for long sequences. Heads must have been packed in work.format.
bool has_attention_wgmma(const AttentionWork& work);
void launch_attention_wgmma(CudaStream& stream, const AttentionWork& work, int num_sms);
/// The same for E4M3 alone.
void launch_attention_e4m3(CudaStream& stream, const AttentionWork& work, int num_sms);

/// The sequences in cuDNN's form: lengths, and offsets in elements. Sequences that are not live
/// have length 0 and begin where the last one ends.
struct AttentionOffsets {
  std::int32_t* lengths;  ///< [num_seqs]
  std::int32_t* qkv;      ///< [num_seqs + 1], first row times elements of a row of qkv
  std::int32_t* out;      ///< [num_seqs + 1], first row times elements of a row of out
  int num_seqs;           ///< at least work.max_seqs
};

/// Fills the offsets on the device, and zeros the rows of work.out that no sequence covers.
void launch_attention_offsets(CudaStream& stream, const AttentionWork& work,
                              const AttentionOffsets& offsets, int num_sms);

}  // namespace fovea::cuda
