// Products with two warp groups that take tiles in turn.
#include "ops/cuda/gemm_hopper_kernel.cuh"

namespace fovea::cuda {

namespace {

using gemm::kernel_of;
using gemm::Neighbours;
using gemm::Plan;
using gemm::Teamwork;
using gemm::Tile;

constexpr HopperGemmKernel kKernels[] = {
    kernel_of<Plan<Teamwork::kAlternating, Tile<2, 128, 128>, 6, Neighbours<2, 1>>>(
        "128x128 by 2x1 alternating"),
    kernel_of<Plan<Teamwork::kAlternating, Tile<2, 128, 144>, 5, Neighbours<2, 1>>>(
        "128x144 by 2x1 alternating"),
    kernel_of<Plan<Teamwork::kAlternating, Tile<2, 128, 144>, 5, Neighbours<1, 2>>>(
        "128x144 by 1x2 alternating"),
    kernel_of<Plan<Teamwork::kAlternating, Tile<2, 128, 144>, 5, Neighbours<2, 2>>>(
        "128x144 by 2x2 alternating"),
};

}  // namespace

std::span<const HopperGemmKernel> alternating_gemm_kernels() { return kKernels; }

}  // namespace fovea::cuda
