#pragma once

#include <functional>

#include "ops/cuda/gemm/gemm.h"

namespace fovea::cuda {

/// The product alone: without activation and residual.
[[nodiscard]] Gemm plain_product(Gemm gemm);

/// Computes a product in two steps, first plain_product, then one point-wise kernel with activation
/// and residual. Rounds twice, as PyTorch does in bf16.
/// @param product computes a plain product on the stream.
/// @throws Error(kUnsupported) if the residual is the output and one row of it exceeds the scratch.
void run_unfused(CudaStream& stream, const Gemm& gemm, int num_multiprocessors,
                 const std::function<void(const Gemm&)>& product);

}  // namespace fovea::cuda
