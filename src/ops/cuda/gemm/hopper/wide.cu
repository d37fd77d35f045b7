// GEMMs with two or three warp groups that share a tile.
#include "ops/cuda/gemm/hopper/kernel.cuh"

namespace fovea::cuda {

namespace gemm {

constexpr HopperGemmKernel kWideKernels[] = {
    kernel_of<Plan<Teamwork::kTogether, Tile<2, 64, 64>, 8, Neighbours<2, 2>>>("128x64 by 2x2"),
    kernel_of<Plan<Teamwork::kTogether, Tile<2, 64, 64>, 8, Neighbours<2, 1>>>("128x64 by 2x1"),
    kernel_of<Plan<Teamwork::kTogether, Tile<2, 64, 72>, 7, Neighbours<1, 2>>>("128x72 by 1x2"),
    kernel_of<Plan<Teamwork::kTogether, Tile<2, 64, 72>, 7, Neighbours<1, 4>>>("128x72 by 1x4"),
    kernel_of<Plan<Teamwork::kTogether, Tile<2, 64, 128>, 6, Neighbours<2, 1>>>("128x128 by 2x1"),
    kernel_of<Plan<Teamwork::kTogether, Tile<2, 64, 128>, 6, Neighbours<2, 2>>>("128x128 by 2x2"),
    kernel_of<Plan<Teamwork::kTogether, Tile<2, 64, 144>, 5, Neighbours<2, 1>>>("128x144 by 2x1"),
    kernel_of<Plan<Teamwork::kTogether, Tile<2, 64, 216>, 4, Neighbours<1, 2>>>("128x216 by 1x2"),
    kernel_of<Plan<Teamwork::kTogether, Tile<2, 64, 192>, 5, Neighbours<2, 1>>>("128x192 by 2x1"),
    kernel_of<Plan<Teamwork::kTogether, Tile<2, 64, 256>, 4, Neighbours<2, 1>>>("128x256 by 2x1"),
    kernel_of<Plan<Teamwork::kTogether, Tile<2, 128, 144>, 4, Neighbours<1, 2>>>("256x144 by 1x2"),
    kernel_of<Plan<Teamwork::kTogether, Tile<3, 64, 144>, 4, Neighbours<1, 2>>>("192x144 by 1x2"),
    kernel_of<Plan<Teamwork::kTogether, Tile<3, 64, 192>, 4, Neighbours<2, 1>>>("192x192 by 2x1"),
    kernel_of<Plan<Teamwork::kTogether, Tile<3, 64, 192>, 4, Neighbours<1, 2>>>("192x192 by 1x2"),
    kernel_of<Plan<Teamwork::kSplit, Tile<2, 64, 64>, 6>>("128x64 split"),
    kernel_of<Plan<Teamwork::kSplit, Tile<2, 64, 64>, 6, Neighbours<2, 1>>>("128x64 by 2x1 split"),
    kernel_of<Plan<Teamwork::kSplit, Tile<2, 64, 72>, 7, Neighbours<1, 2>>>("128x72 by 1x2 split"),
    kernel_of<Plan<Teamwork::kSplit, Tile<2, 64, 128>, 4, Neighbours<2, 1>>>(
        "128x128 by 2x1 split"),
};

}  // namespace gemm

std::span<const HopperGemmKernel> wide_gemm_kernels() { return gemm::kWideKernels; }

}  // namespace fovea::cuda
