// GEMMs with two or three warp groups that share a tile.
#include "ops/cuda/gemm/hopper/kernel.cuh"

namespace fovea::cuda {

namespace gemm {

constexpr HopperGemmKernel kWideKernels[] = {
    kernel_of<Plan<Schedule::kCooperative, Tile<2, 64, 64>, 8, ClusterTiles<2, 2>>>(
        "128x64 by 2x2"),
    kernel_of<Plan<Schedule::kCooperative, Tile<2, 64, 64>, 8, ClusterTiles<2, 1>>>(
        "128x64 by 2x1"),
    kernel_of<Plan<Schedule::kCooperative, Tile<2, 64, 72>, 7, ClusterTiles<1, 2>>>(
        "128x72 by 1x2"),
    kernel_of<Plan<Schedule::kCooperative, Tile<2, 64, 72>, 7, ClusterTiles<1, 4>>>(
        "128x72 by 1x4"),
    kernel_of<Plan<Schedule::kCooperative, Tile<2, 64, 128>, 6, ClusterTiles<2, 1>>>(
        "128x128 by 2x1"),
    kernel_of<Plan<Schedule::kCooperative, Tile<2, 64, 128>, 6, ClusterTiles<2, 2>>>(
        "128x128 by 2x2"),
    kernel_of<Plan<Schedule::kCooperative, Tile<2, 64, 144>, 5, ClusterTiles<2, 1>>>(
        "128x144 by 2x1"),
    kernel_of<Plan<Schedule::kCooperative, Tile<2, 64, 216>, 4, ClusterTiles<1, 2>>>(
        "128x216 by 1x2"),
    kernel_of<Plan<Schedule::kCooperative, Tile<2, 64, 192>, 5, ClusterTiles<2, 1>>>(
        "128x192 by 2x1"),
    kernel_of<Plan<Schedule::kCooperative, Tile<2, 64, 256>, 4, ClusterTiles<2, 1>>>(
        "128x256 by 2x1"),
    kernel_of<Plan<Schedule::kCooperative, Tile<2, 128, 144>, 4, ClusterTiles<1, 2>>>(
        "256x144 by 1x2"),
    kernel_of<Plan<Schedule::kCooperative, Tile<3, 64, 144>, 4, ClusterTiles<1, 2>>>(
        "192x144 by 1x2"),
    kernel_of<Plan<Schedule::kCooperative, Tile<3, 64, 192>, 4, ClusterTiles<2, 1>>>(
        "192x192 by 2x1"),
    kernel_of<Plan<Schedule::kCooperative, Tile<3, 64, 192>, 4, ClusterTiles<1, 2>>>(
        "192x192 by 1x2"),
    kernel_of<Plan<Schedule::kSplitK, Tile<2, 64, 64>, 6>>("128x64 split"),
    kernel_of<Plan<Schedule::kSplitK, Tile<2, 64, 64>, 6, ClusterTiles<2, 1>>>(
        "128x64 by 2x1 split"),
    kernel_of<Plan<Schedule::kSplitK, Tile<2, 64, 72>, 7, ClusterTiles<1, 2>>>(
        "128x72 by 1x2 split"),
    kernel_of<Plan<Schedule::kSplitK, Tile<2, 64, 128>, 4, ClusterTiles<2, 1>>>(
        "128x128 by 2x1 split"),
};

}  // namespace gemm

std::span<const HopperGemmKernel> wide_gemm_kernels() { return gemm::kWideKernels; }

}  // namespace fovea::cuda
