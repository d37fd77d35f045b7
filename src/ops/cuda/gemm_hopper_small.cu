// Products of few rows: one warp group per block, two blocks per multiprocessor, so that the next
// product brings its weights while this one works.
#include "ops/cuda/gemm_hopper_kernel.cuh"

namespace fovea::cuda {

using gemm::kernel_of;
using gemm::Plan;
using gemm::Teamwork;

const HopperGemmKernel kSmallGemmKernels[6] = {
    kernel_of<Plan<Teamwork::kTogether, 1, 64, 32, 8>>("64x32"),
    kernel_of<Plan<Teamwork::kTogether, 1, 64, 64, 6>>("64x64"),
    kernel_of<Plan<Teamwork::kTogether, 1, 64, 128, 4>>("64x128"),
    kernel_of<Plan<Teamwork::kSplit, 1, 64, 32, 8>>("64x32 split"),
    kernel_of<Plan<Teamwork::kSplit, 1, 64, 64, 5>>("64x64 split"),
    kernel_of<Plan<Teamwork::kSplit, 1, 64, 128, 3>>("64x128 split")};

}  // namespace fovea::cuda
