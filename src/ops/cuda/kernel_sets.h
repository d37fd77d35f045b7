#pragma once

#include <cuda_runtime_api.h>

namespace fovea::cuda {

/// Which of this plugin's kernels a GPU runs. All of them are built twice over: the portable ones
/// for a list of architectures, those with WGMMA and TMA for sm_90a alone.
struct KernelSets {
  bool hopper;       ///< those of sm_90a
  bool start_early;  ///< the portable ones wait for their predecessors themselves: their code is
                     ///< for compute 9.0 or newer, not compiled by the driver from older PTX
};

/// Asks the CUDA runtime, which knows what was compiled and what the driver can translate.
/// @throws Error(kUnsupported) if the GPU cannot even run the portable kernels.
[[nodiscard]] KernelSets kernel_sets_of(int device_index);

/// Whether this build has kernels of sm_90a.
[[nodiscard]] bool has_hopper_build() noexcept;

/// Whether the kernels of sm_90a run on the current GPU, as an answer of the runtime.
[[nodiscard]] cudaError_t find_hopper_kernels();

}  // namespace fovea::cuda
