// Products with two warp groups that take tiles in turn.
#include "ops/cuda/gemm_hopper_kernel.cuh"

namespace fovea::cuda {

using gemm::kernel_of;
using gemm::Plan;
using gemm::Teamwork;

const HopperGemmKernel kAlternatingGemmKernels[2] = {
    kernel_of<Plan<Teamwork::kAlternating, 2, 128, 128, 6>>("128x128 alternating"),
    kernel_of<Plan<Teamwork::kAlternating, 2, 128, 144, 5>>("128x144 alternating")};

}  // namespace fovea::cuda
