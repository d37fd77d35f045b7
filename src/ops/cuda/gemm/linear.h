#pragma once

#include "fovea/tower/device/device.h"
#include "fovea/tower/ops/context.h"
#include "fovea/tower/ops/linear.h"
#include "ops/cuda/gemm/gemm.h"

namespace fovea::cuda {

/// The body of Kernels::pack_linear on a GPU that has kernels for the format. Layers that our GEMM
/// kernels do not accept as E4M3, whose features are no multiples of 16, stay bf16. Returns when
/// the copies are complete.
[[nodiscard]] ops::PackedLinear pack_linear(Device& device, int device_index,
                                            ConstTensorView weight, ConstTensorView bias,
                                            ops::WeightFormat format);

/// The bodies of the functions of Kernels with the same names: a GEMM, or two, behind the
/// quantization of x where weights are quantized.
[[nodiscard]] std::size_t linear_workspace(const ops::LinearArgs& args);
void linear(const Submission& submission, const ops::LinearArgs& args, GemmLibrary& library,
            int num_sms);
void mlp(const Submission& submission, const ops::MlpArgs& args, GemmLibrary& library, int num_sms);

/// The GEMM of a layer, ready to run. Quantizes x into memory from the arena, which stays taken in
/// the caller's scope, if the weights are quantized.
[[nodiscard]] Gemm prepare_gemm(const Submission& submission, const ops::LinearArgs& args,
                                int num_sms);

}  // namespace fovea::cuda
