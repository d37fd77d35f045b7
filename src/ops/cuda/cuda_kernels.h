#pragma once

#include <memory>

#include "device/cuda/sm_partition.h"
#include "device/cuda_abi.h"
#include "ops/cuda/kernel_sets.h"
#include "ops/kernels.h"

namespace fovea::cuda {

/// Creates the kernels of one GPU: bf16 activations and weights, f32 accumulation and
/// statistics. Norm parameters, tables and angles arrive in f32. Every body reads the live counts
/// on the device and stops there, except for GEMMs by cuBLASLt, which compute all rows.
/// Activations have to be bf16 (check_bf16), otherwise Error(kUnsupported). Thread-safe.
/// @param sets which kernels the GPU runs. @param sms what grids are sized for, and where kernels
/// are timed.
/// @throws Error(kUnsupported) if the options ask for cuDNN or the Hopper kernel and there is none,
/// Error(kDevice).
[[nodiscard]] std::shared_ptr<const Kernels> make_cuda_kernels(
    const CudaDeviceOptions& options, const KernelSets& sets,
    std::shared_ptr<const SmPartition> sms);

}  // namespace fovea::cuda
