// The instances of the kernel for all blocks of a tower, and the constants that it reads.
#include "ops/cuda/tower/kernel.cuh"

namespace fovea::cuda {

namespace {

constexpr int kConstantsThreads = 256;

__device__ float sum_of_warp(float value) {
#pragma unroll
  for (int offset = kWarp / 2; offset > 0; offset /= 2)
    value += __shfl_xor_sync(kAllLanes, value, offset);
  return value;
}

/// A GEMM behind a norm, and where its constants go.
struct NormedGemm {
  const __nv_bfloat16* weight;  ///< [columns, width]
  const __nv_bfloat16* bias;    ///< [columns], or null
  const float* gamma;           ///< [width], of the norm, as is beta
  const float* beta;
  float2* to;  ///< [columns]
  int columns;
  int width;
  int paired_columns;  ///< the first, of heads that rotate: the two of a pair go side by side
  int pairs;           ///< of a head
};

/// BlockWeights::constants of a GEMM behind a norm, a warp per column.
__global__ void fold_norm(const __grid_constant__ NormedGemm g) {
  const int column =
      static_cast<int>(blockIdx.x * (kConstantsThreads / kWarp) + threadIdx.x / kWarp);
  if (column >= g.columns) return;
  float scaled = 0;
  float shifted = 0;
  for (int i = lane_index(); i < g.width; i += kWarp) {
    const float w = __bfloat162float(g.weight[static_cast<std::int64_t>(column) * g.width + i]);
    scaled = fmaf(w, g.gamma[i], scaled);
    shifted = fmaf(w, g.beta[i], shifted);
  }
  scaled = sum_of_warp(scaled);
  shifted = sum_of_warp(shifted);
  if (lane_index() != 0) return;
  if (g.bias != nullptr) shifted += __bfloat162float(g.bias[column]);
  const int dim = column % (2 * g.pairs);
  const int place =
      column < g.paired_columns ? column - dim + dim % g.pairs * 2 + dim / g.pairs : column;
  g.to[place] = make_float2(scaled, shifted);
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
  static constexpr std::size_t kSharedBytes = sizeof(CtaMemory<Sizes>);
  static_assert(kSharedBytes <= kHopperSharedBytes);

  /// What a launch and the question whether it can run have in common.
  struct Launch : LaunchConfig {
    explicit Launch(cudaStream_t stream)
        : LaunchConfig(stream, dim3(Sizes::kCtas), dim3(kCtaThreads), kSharedBytes) {
      form_clusters(kSplits);
    }
  };

  static bool prepare(cudaStream_t stream, int num_sms) {
    if (cudaFuncSetAttribute(blocks_kernel<Sizes>, cudaFuncAttributeMaxDynamicSharedMemorySize,
                             kSharedBytes) != cudaSuccess) {
      (void)cudaGetLastError();
      return false;
    }
    const Launch launch(stream);
    int clusters = 0;
    FOVEA_CUDA_CHECK(cudaOccupancyMaxActiveClusters(&clusters, blocks_kernel<Sizes>, launch.get()));
    return std::min(clusters * kSplits, num_sms) >= Sizes::kCtas;
  }

  static void make_constants(cudaStream_t stream, const BlockConstantsWork& work) {
    const auto warps = [](int columns) {
      return static_cast<unsigned>((columns * kWarp + kConstantsThreads - 1) / kConstantsThreads);
    };
    const auto threads =
        static_cast<unsigned>((Sizes::kWidth + kConstantsThreads - 1) / kConstantsThreads);
    const NormedGemm qkv{.weight = work.weight[kQkv],
                         .bias = work.bias[kQkv],
                         .gamma = work.gamma1,
                         .beta = work.beta1,
                         .to = work.to[kQkv],
                         .columns = 3 * Sizes::kWidth,
                         .width = Sizes::kWidth,
                         .paired_columns = 2 * Sizes::kWidth,
                         .pairs = Sizes::kPairs};
    const NormedGemm fc1{.weight = work.weight[kFc1],
                         .bias = work.bias[kFc1],
                         .gamma = work.gamma2,
                         .beta = work.beta2,
                         .to = work.to[kFc1],
                         .columns = Sizes::kMlp,
                         .width = Sizes::kWidth,
                         .paired_columns = 0,
                         .pairs = Sizes::kPairs};
    for (const NormedGemm& gemm : {qkv, fc1})
      fold_norm<<<warps(gemm.columns), kConstantsThreads, 0, stream>>>(gemm);
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
