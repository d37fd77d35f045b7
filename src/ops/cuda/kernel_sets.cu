// Asks after one empty kernel for all portable ones.
#include "ops/cuda/kernel_sets.h"

#include "core/check.h"
#include "device/cuda/handles.h"

namespace fovea::cuda {

namespace {

__global__ void portable_kernel() {}

}  // namespace

KernelSets kernel_sets_of(int device_index) {
  const DeviceGuard guard(device_index);
  cudaFuncAttributes found{};
  const cudaError_t portable = cudaFuncGetAttributes(&found, &portable_kernel);
  FOVEA_CHECK(portable == cudaSuccess, kUnsupported, "cuda:", device_index,
              ": the plugin has no kernels for this GPU: ", cudaGetErrorString(portable));
  const bool hopper = find_hopper_kernels() == cudaSuccess;
  (void)cudaGetLastError();  // what the question left behind
  constexpr int kHopperPtx = 90;
  return {.hopper = hopper, .start_early = found.ptxVersion >= kHopperPtx};
}

}  // namespace fovea::cuda
