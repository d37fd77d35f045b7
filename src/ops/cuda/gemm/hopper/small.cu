// GEMMs of few rows: one warp group per CTA and two CTAs per SM, so that the next GEMM loads
// its weights while this one works.
#include "ops/cuda/gemm/hopper/kernel.cuh"

namespace fovea::cuda {

namespace gemm {

constexpr HopperGemmKernel kSmallKernels[] = {
    kernel_of<Plan<Schedule::kCooperative, Tile<1, 64, 32>, 8>>("64x32"),
    kernel_of<Plan<Schedule::kCooperative, Tile<1, 64, 32>, 8, ClusterTiles<1, 4>>>("64x32 by 1x4"),
    kernel_of<Plan<Schedule::kCooperative, Tile<1, 64, 40>, 7>>("64x40"),
    kernel_of<Plan<Schedule::kCooperative, Tile<1, 64, 64>, 6>>("64x64"),
    kernel_of<Plan<Schedule::kCooperative, Tile<1, 64, 64>, 6, ClusterTiles<1, 4>>>("64x64 by 1x4"),
    kernel_of<Plan<Schedule::kCooperative, Tile<1, 64, 64>, 6, ClusterTiles<2, 2>>>("64x64 by 2x2"),
    kernel_of<Plan<Schedule::kCooperative, Tile<1, 64, 128>, 4, ClusterTiles<2, 2>>>(
        "64x128 by 2x2"),
    kernel_of<Plan<Schedule::kSplitK, Tile<1, 64, 32>, 8>>("64x32 split"),
    kernel_of<Plan<Schedule::kSplitK, Tile<1, 64, 32>, 8, ClusterTiles<1, 2>>>(
        "64x32 by 1x2 split"),
    kernel_of<Plan<Schedule::kSplitK, Tile<1, 64, 32>, 8, ClusterTiles<1, 4>>>(
        "64x32 by 1x4 split"),
    kernel_of<Plan<Schedule::kSplitK, Tile<1, 64, 64>, 5>>("64x64 split"),
    kernel_of<Plan<Schedule::kSplitK, Tile<1, 64, 64>, 5, ClusterTiles<1, 2>>>(
        "64x64 by 1x2 split"),
    kernel_of<Plan<Schedule::kSplitK, Tile<1, 64, 72>, 5>>("64x72 split"),
};

}  // namespace gemm

std::span<const HopperGemmKernel> small_gemm_kernels() { return gemm::kSmallKernels; }

}  // namespace fovea::cuda
