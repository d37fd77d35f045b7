// Compiled with the kernels of sm_90a, to ask whether there are any.
#include "ops/cuda/kernel_sets.h"

namespace fovea::cuda {

namespace {

__global__ void hopper_kernel() {}

}  // namespace

bool has_hopper_build() noexcept { return true; }

cudaError_t find_hopper_kernels() {
  cudaFuncAttributes found{};
  return cudaFuncGetAttributes(&found, &hopper_kernel);
}

}  // namespace fovea::cuda
