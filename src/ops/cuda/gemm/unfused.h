#pragma once

#include <functional>

#include "ops/cuda/gemm/gemm.h"

namespace fovea::cuda {

/// The GEMM alone, without activation and residual.
[[nodiscard]] Gemm plain_gemm(Gemm gemm);

/// Computes a GEMM in two steps: first plain_gemm, then one point-wise kernel with activation and
/// residual. Rounds twice, as PyTorch in bf16.
/// @param run_plain computes a plain GEMM on the stream.
/// @throws Error(kUnsupported) if the residual is the output and one row of it exceeds the scratch.
void run_unfused(CudaStream& stream, const Gemm& gemm, int num_sms,
                 const std::function<void(const Gemm&)>& run_plain);

}  // namespace fovea::cuda
