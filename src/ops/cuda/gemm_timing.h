#pragma once

#include <span>

#include "ops/cuda/gemm.h"

namespace fovea::cuda {

/// The fastest of some algorithms for a product, measured on random data of its sizes: zeros would
/// draw less power and run faster. Weights rotate through more memory than the L2 cache holds,
/// because in a tower every layer brings its own; activations stay, because their producer just
/// wrote them. Blocks until measured. Falls back to the first candidate if memory is short.
[[nodiscard]] cublasLtMatmulAlgo_t fastest_algorithm(
    cublasLtHandle_t library, CudaStream& stream, const Gemm& gemm,
    std::span<const cublasLtMatmulAlgo_t> candidates);

}  // namespace fovea::cuda
