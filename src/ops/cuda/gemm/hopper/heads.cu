// GEMMs whose columns are queries, keys and values. Tiles hold whole heads, of the head dims of
// the vision towers of Qwen3-VL.
#include "ops/cuda/gemm/hopper/kernel.cuh"

namespace fovea::cuda {

namespace gemm {

constexpr HopperGemmKernel kHeadKernels[] = {
    kernel_of<Plan<Schedule::kCooperative, Tile<2, 64, 216>, 4, ClusterTiles<1, 2>, 72>>(
        "128x216 by 1x2, heads of 72"),
    kernel_of<Plan<Schedule::kCooperative, Tile<3, 64, 144>, 4, ClusterTiles<1, 2>, 72>>(
        "192x144 by 1x2, heads of 72"),
    kernel_of<Plan<Schedule::kCooperative, Tile<2, 64, 192>, 5, ClusterTiles<2, 1>, 64>>(
        "128x192 by 2x1, heads of 64"),
    kernel_of<Plan<Schedule::kCooperative, Tile<2, 64, 256>, 4, ClusterTiles<2, 1>, 64>>(
        "128x256 by 2x1, heads of 64"),
};

}  // namespace gemm

std::span<const HopperGemmKernel> head_gemm_kernels() { return gemm::kHeadKernels; }

}  // namespace fovea::cuda
