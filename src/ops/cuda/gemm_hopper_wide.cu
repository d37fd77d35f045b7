// Products with two warp groups that share a tile.
#include "ops/cuda/gemm_hopper_kernel.cuh"

namespace fovea::cuda {

using gemm::kernel_of;
using gemm::Plan;
using gemm::Teamwork;

const HopperGemmKernel kWideGemmKernels[6] = {
    kernel_of<Plan<Teamwork::kTogether, 2, 64, 64, 4>>("128x64"),
    kernel_of<Plan<Teamwork::kTogether, 2, 64, 128, 6>>("128x128"),
    kernel_of<Plan<Teamwork::kTogether, 2, 64, 144, 5>>("128x144"),
    kernel_of<Plan<Teamwork::kTogether, 2, 64, 216, 4>>("128x216"),
    kernel_of<Plan<Teamwork::kSplit, 2, 64, 64, 5>>("128x64 split"),
    kernel_of<Plan<Teamwork::kSplit, 2, 64, 128, 4>>("128x128 split")};

}  // namespace fovea::cuda
