// GEMMs with two warp groups that take tiles in turn.
#include "ops/cuda/gemm/hopper/kernel.cuh"

namespace fovea::cuda {

namespace gemm {

constexpr HopperGemmKernel kPingpongKernels[] = {
    kernel_of<Plan<Schedule::kPingpong, Tile<2, 128, 128>, 6, ClusterTiles<2, 1>>>(
        "128x128 by 2x1 alternating"),
    kernel_of<Plan<Schedule::kPingpong, Tile<2, 128, 144>, 5, ClusterTiles<2, 1>>>(
        "128x144 by 2x1 alternating"),
    kernel_of<Plan<Schedule::kPingpong, Tile<2, 128, 144>, 5, ClusterTiles<1, 2>>>(
        "128x144 by 1x2 alternating"),
    kernel_of<Plan<Schedule::kPingpong, Tile<2, 128, 144>, 5, ClusterTiles<2, 2>>>(
        "128x144 by 2x2 alternating"),
};

}  // namespace gemm

std::span<const HopperGemmKernel> pingpong_gemm_kernels() { return gemm::kPingpongKernels; }

}  // namespace fovea::cuda
