// The instances of the kernel for all blocks of a tower, and the constants that it reads.
#include "ops/cuda/blocks/kernel.cuh"

namespace fovea::cuda {

namespace {

constexpr int kConstantsThreads = 256;

__device__ float sum_of_warp(float value) {
#pragma unroll
  for (int offset = kWarp / 2; offset > 0; offset /= 2)
    value += __shfl_xor_sync(kAllLanes, value, offset);
  return value;
}

/// Constants of a GEMM behind a norm, a warp per column. The first `paired_columns` are those of
/// heads that rotate, and go where the two columns of a pair are side by side.
__global__ void fold_norm(const __nv_bfloat16* weight, const __nv_bfloat16* bias,
                          const float* gamma, const float* beta, float2* to, int columns, int width,
                          int paired_columns, int pairs) {
  const int column =
      static_cast<int>(blockIdx.x * (kConstantsThreads / kWarp) + threadIdx.x / kWarp);
  if (column >= columns) return;
  float scaled = 0;
  float shifted = 0;
  for (int i = lane_index(); i < width; i += kWarp) {
    const float w = __bfloat162float(weight[static_cast<std::int64_t>(column) * width + i]);
    scaled = fmaf(w, gamma[i], scaled);
    shifted = fmaf(w, beta[i], shifted);
  }
  scaled = sum_of_warp(scaled);
  shifted = sum_of_warp(shifted);
  if (lane_index() != 0) return;
  if (bias != nullptr) shifted += __bfloat162float(bias[column]);
  const int dim = column % (2 * pairs);
  const int place = column < paired_columns ? column - dim + dim % pairs * 2 + dim / pairs : column;
  to[place] = make_float2(scaled, shifted);
}

/// Constants of a GEMM before a norm; either may be absent.
__global__ void pair_constants(const __nv_bfloat16* bias, const float* gamma, float2* to,
                               int columns) {
  const int column = static_cast<int>(blockIdx.x * kConstantsThreads + threadIdx.x);
  if (column >= columns) return;
  to[column] = make_float2(bias != nullptr ? __bfloat162float(bias[column]) : 0,
                           gamma != nullptr ? gamma[column] : 0);
}

template <class Sizes>
struct BlockInstance {
  static constexpr std::size_t kSharedBytes = sizeof(BlockMemory<Sizes>);
  static_assert(kSharedBytes <= kHopperSharedBytes);

  /// What a launch and the question whether it can run have in common.
  struct Launch : LaunchConfig {
    explicit Launch(cudaStream_t stream)
        : LaunchConfig(stream, dim3(Sizes::kThreadBlocks), dim3(kBlockThreads), kSharedBytes) {
      form_clusters(kSplits);
    }
  };

  static bool prepare() {
    if (cudaFuncSetAttribute(blocks_kernel<Sizes>, cudaFuncAttributeMaxDynamicSharedMemorySize,
                             kSharedBytes) != cudaSuccess) {
      (void)cudaGetLastError();
      return false;
    }
    const Launch launch(nullptr);
    int clusters = 0;
    FOVEA_CUDA_CHECK(cudaOccupancyMaxActiveClusters(&clusters, blocks_kernel<Sizes>, launch.get()));
    return clusters * kSplits >= Sizes::kThreadBlocks;
  }

  static void make_constants(cudaStream_t stream, const BlockConstantsWork& work) {
    const auto warps = [](int columns) {
      return static_cast<unsigned>((columns * kWarp + kConstantsThreads - 1) / kConstantsThreads);
    };
    const auto threads =
        static_cast<unsigned>((Sizes::kWidth + kConstantsThreads - 1) / kConstantsThreads);
    fold_norm<<<warps(3 * Sizes::kWidth), kConstantsThreads, 0, stream>>>(
        work.weight[kQkv], work.bias[kQkv], work.gamma1, work.beta1, work.to[kQkv],
        3 * Sizes::kWidth, Sizes::kWidth, 2 * Sizes::kWidth, Sizes::kPairs);
    fold_norm<<<warps(Sizes::kMlp), kConstantsThreads, 0, stream>>>(
        work.weight[kFc1], work.bias[kFc1], work.gamma2, work.beta2, work.to[kFc1], Sizes::kMlp,
        Sizes::kWidth, 0, Sizes::kPairs);
    pair_constants<<<threads, kConstantsThreads, 0, stream>>>(work.bias[kProj], work.gamma2,
                                                              work.to[kProj], Sizes::kWidth);
    pair_constants<<<threads, kConstantsThreads, 0, stream>>>(work.bias[kFc2], work.next_gamma1,
                                                              work.to[kFc2], Sizes::kWidth);
    pair_constants<<<threads, kConstantsThreads, 0, stream>>>(nullptr, work.gamma1, work.entry,
                                                              Sizes::kWidth);
    FOVEA_CUDA_CHECK(cudaGetLastError());
  }

  static void launch(const CudaStream& stream, const BlocksWork& work) {
    const DeviceGuard guard(stream.device_index());
    FOVEA_CUDA_CHECK(cudaMemsetAsync(work.mail, 0, Sizes::kMailBytes, stream.handle()));
    Launch launch(stream.handle());
    launch.run_all_at_once();  // or two such kernels could wait for each other
    FOVEA_CUDA_CHECK(cudaLaunchKernelEx(launch.get(), blocks_kernel<Sizes>, work));
  }

  static BlockKernel kernel() {
    constexpr int kBeyond = Sizes::kTileCols;  // columns that a tile may have too many
    return {.rows = Sizes::kRows,
            .width = Sizes::kWidth,
            .num_heads = Sizes::kHeads,
            .head_dim = Sizes::kHeadDim,
            .mlp = Sizes::kMlp,
            .activation = Sizes::kActivation,
            .mail_bytes = Sizes::kMailBytes,
            .constants = {3 * Sizes::kWidth + kBeyond, Sizes::kWidth + kBeyond,
                          Sizes::kMlpTiles * Sizes::kTileCols, Sizes::kWidth + kBeyond},
            .prepare = prepare,
            .make_constants = make_constants,
            .launch = launch};
  }
};

}  // namespace

std::span<const BlockKernel> block_kernels() {
  static const BlockKernel kernels[] = {
      BlockInstance<Blocks1152<64, 3>>::kernel(), BlockInstance<Blocks1152<256, 1>>::kernel(),
      BlockInstance<Blocks1024<64, 4>>::kernel(), BlockInstance<Blocks1024<256, 1>>::kernel()};
  return kernels;
}

}  // namespace fovea::cuda
