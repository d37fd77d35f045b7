// Products of few rows: one warp group per block, two blocks per multiprocessor, so that the next
// product brings its weights while this one works.
#include "ops/cuda/gemm_hopper_kernel.cuh"

namespace fovea::cuda {

namespace {

using gemm::kernel_of;
using gemm::Neighbours;
using gemm::Plan;
using gemm::Teamwork;
using gemm::Tile;

constexpr HopperGemmKernel kKernels[] = {
    kernel_of<Plan<Teamwork::kTogether, Tile<1, 64, 32>, 8>>("64x32"),
    kernel_of<Plan<Teamwork::kTogether, Tile<1, 64, 32>, 8, Neighbours<1, 4>>>("64x32 by 1x4"),
    kernel_of<Plan<Teamwork::kTogether, Tile<1, 64, 40>, 7>>("64x40"),
    kernel_of<Plan<Teamwork::kTogether, Tile<1, 64, 64>, 6>>("64x64"),
    kernel_of<Plan<Teamwork::kTogether, Tile<1, 64, 64>, 6, Neighbours<1, 4>>>("64x64 by 1x4"),
    kernel_of<Plan<Teamwork::kTogether, Tile<1, 64, 64>, 6, Neighbours<2, 2>>>("64x64 by 2x2"),
    kernel_of<Plan<Teamwork::kTogether, Tile<1, 64, 128>, 4, Neighbours<2, 2>>>("64x128 by 2x2"),
    kernel_of<Plan<Teamwork::kSplit, Tile<1, 64, 32>, 8>>("64x32 split"),
    kernel_of<Plan<Teamwork::kSplit, Tile<1, 64, 32>, 8, Neighbours<1, 2>>>("64x32 by 1x2 split"),
    kernel_of<Plan<Teamwork::kSplit, Tile<1, 64, 32>, 8, Neighbours<1, 4>>>("64x32 by 1x4 split"),
    kernel_of<Plan<Teamwork::kSplit, Tile<1, 64, 64>, 5>>("64x64 split"),
    kernel_of<Plan<Teamwork::kSplit, Tile<1, 64, 64>, 5, Neighbours<1, 2>>>("64x64 by 1x2 split"),
    kernel_of<Plan<Teamwork::kSplit, Tile<1, 64, 72>, 5>>("64x72 split"),
};

}  // namespace

std::span<const HopperGemmKernel> small_gemm_kernels() { return kKernels; }

}  // namespace fovea::cuda
