// GEMMs with two warp groups that take tiles in turn.
#include "ops/cuda/gemm/hopper/kernel.cuh"

namespace fovea::cuda {

namespace gemm {

constexpr HopperGemmKernel kAlternatingKernels[] = {
    kernel_of<Plan<Teamwork::kAlternating, Tile<2, 128, 128>, 6, Neighbours<2, 1>>>(
        "128x128 by 2x1 alternating"),
    kernel_of<Plan<Teamwork::kAlternating, Tile<2, 128, 144>, 5, Neighbours<2, 1>>>(
        "128x144 by 2x1 alternating"),
    kernel_of<Plan<Teamwork::kAlternating, Tile<2, 128, 144>, 5, Neighbours<1, 2>>>(
        "128x144 by 1x2 alternating"),
    kernel_of<Plan<Teamwork::kAlternating, Tile<2, 128, 144>, 5, Neighbours<2, 2>>>(
        "128x144 by 2x2 alternating"),
};

}  // namespace gemm

std::span<const HopperGemmKernel> alternating_gemm_kernels() { return gemm::kAlternatingKernels; }

}  // namespace fovea::cuda
