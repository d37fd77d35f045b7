#pragma once

#include <vector>

#include "ops/cuda/gemm/gemm.h"

namespace fovea::cuda {

/// One matmul by cuBLASLt. In the library's column-major terms a row-major
/// out[rows, n] = x[rows, k] weight[n, k]^T is D (n x rows) = op(A) B with A = weight (k x n,
/// transposed) and B = x (k x rows): no operand is ever moved or transposed in memory.
/// The descriptors live on the stack. The bias address is part of them; the other operands are
/// given per run.
class CublasLtMatmul {
 public:
  /// Whether the library has the epilogue: no activation, or tanh-GELU without a residual.
  [[nodiscard]] static bool has_epilogue(const Gemm& gemm);

  /// @param gemm has_epilogue(gemm) holds. @param num_sms what the library chooses algorithms for.
  CublasLtMatmul(const Gemm& gemm, int num_sms);
  CublasLtMatmul(const CublasLtMatmul&) = delete;
  CublasLtMatmul& operator=(const CublasLtMatmul&) = delete;

  /// What the library proposes, best first by its own estimate; empty if it knows nothing.
  [[nodiscard]] std::vector<cublasLtMatmulAlgo_t> candidates(cublasLtHandle_t library,
                                                             int alignment, std::size_t scratch,
                                                             int at_most) const;
  /// Whether an algorithm chosen for other sizes can compute this matmul.
  [[nodiscard]] bool accepts(cublasLtHandle_t library, const cublasLtMatmulAlgo_t& algorithm,
                             std::size_t scratch) const;
  /// `gemm` has the sizes and bias given at construction.
  void run(cublasLtHandle_t library, const Gemm& gemm, const cublasLtMatmulAlgo_t& algorithm,
           CudaStream& stream) const;

 private:
  mutable cublasLtMatmulDescOpaque_t operation_;  // the library's getters take non-const pointers
  mutable cublasLtMatrixLayoutOpaque_t a_, b_, c_, d_;
  bool has_residual_;
};

}  // namespace fovea::cuda
