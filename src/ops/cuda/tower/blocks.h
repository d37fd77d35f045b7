#pragma once

#include <cuda.h>
#include <cuda_bf16.h>

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "device/cuda/cuda_stream.h"
#include "device/cuda/sm_partition.h"
#include "fovea/tower/ops/blocks.h"

namespace fovea::cuda {

/// The GEMMs of a block in their order.
enum BlockGemm : std::uint8_t { kQkv, kProj, kFc1, kFc2, kNumBlockGemms };

/// One block as the kernel reads it.
struct BlockWeights {
  CUtensorMap pairs;  ///< rows of q and k, the two of a rotation side by side
  CUtensorMap weight[kNumBlockGemms];
  /// Two numbers per column of each GEMM. Behind a norm (qkv, fc1): the sum of its weights times
  /// gamma, and bias + the sum of its weights times beta; columns of q and k as in `pairs`. Before
  /// a norm (proj, fc2): the bias, and gamma of the next norm.
  const float2* constants[kNumBlockGemms];
  const float2* entry;  ///< 0 and gamma of the first norm, per column of x
};

constexpr int kMostBlocksInKernel = 32;  // of a tower, in one launch

/// One launch: blocks of a tower, and the rows that pass through them.
struct BlocksWork {
  BlockWeights block[kMostBlocksInKernel];
  __nv_bfloat16* tap[kMostBlocksInKernel];  ///< [capacity, width]: x behind a block; or null
  int blocks;
  std::byte* mail;   ///< BlockKernel::mail_bytes, zeros
  __nv_bfloat16* x;  ///< [capacity, width], in and out
  const float* cos;  ///< [capacity, head_dim / 2], or null
  const float* sin;
  const std::int32_t* cu_seqlens;
  const std::int32_t* live_seqs;  ///< null: max_seqs
  const std::int32_t* live_rows;  ///< null: capacity
  int max_seqs;
  int capacity;
  float scale;  ///< of q . k
  float epsilon;
};

/// What the constants of a block are made of, on the device.
struct BlockConstantsWork {
  const __nv_bfloat16* weight[kNumBlockGemms];
  const __nv_bfloat16* bias[kNumBlockGemms];  ///< or null
  const float *gamma1, *beta1, *gamma2, *beta2;
  const float* next_gamma1;  ///< of the block behind, or null
  float2* to[kNumBlockGemms];
  float2* entry;
};

constexpr int kWeightRows = 40;  // that TMA copies at once

/// A compiled kernel for towers of one size.
struct BlockKernel {
  int rows;  ///< at most
  int width, num_heads, head_dim, mlp;
  ops::Activation activation;
  std::size_t mail_bytes;
  int constants[kNumBlockGemms];  ///< float2 each, with what is read beyond the last column
  /// Whether a partition of the current GPU can have all CTAs at work at once, an SM for each.
  /// Before the others. @param stream of the partition. @param num_sms of the partition.
  bool (*prepare)(cudaStream_t stream, int num_sms);
  void (*make_constants)(cudaStream_t stream, const BlockConstantsWork& work);
  void (*launch)(const CudaStream& stream, const BlocksWork& work);
};
/// Those of fewer rows first.
[[nodiscard]] std::span<const BlockKernel> block_kernels();

/// ops::prepare_blocks on SMs of a Hopper GPU.
[[nodiscard]] ops::PreparedBlocks prepare_blocks(Device& device, const SmPartition& sms,
                                                 std::span<const ops::BlockLayers> blocks);
/// ops::add_blocks of what prepare_blocks has made, and the bytes of its taps in the arena.
[[nodiscard]] std::optional<std::vector<TensorView>> add_blocks(const Submission& submission,
                                                                const ops::AddBlocksArgs& args);
[[nodiscard]] std::size_t add_blocks_workspace(const ops::AddBlocksArgs& args);

}  // namespace fovea::cuda
