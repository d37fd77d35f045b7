#include "ops/cuda/gemm/cublaslt.h"

namespace fovea::cuda {

namespace {

cublasLtEpilogue_t epilogue_of(const Gemm& gemm) {
  if (gemm.activation == ops::Activation::kGeluTanh) {
    return gemm.bias != nullptr ? CUBLASLT_EPILOGUE_GELU_BIAS : CUBLASLT_EPILOGUE_GELU;
  }
  return gemm.bias != nullptr ? CUBLASLT_EPILOGUE_BIAS : CUBLASLT_EPILOGUE_DEFAULT;
}

template <class T>
void set(cublasLtMatmulDesc_t operation, cublasLtMatmulDescAttributes_t attribute, T value) {
  FOVEA_CUDA_CHECK(cublasLtMatmulDescSetAttribute(operation, attribute, &value, sizeof(value)));
}

template <class T>
void set(cublasLtMatmulPreference_t preference, cublasLtMatmulPreferenceAttributes_t attribute,
         T value) {
  FOVEA_CUDA_CHECK(
      cublasLtMatmulPreferenceSetAttribute(preference, attribute, &value, sizeof(value)));
}

/// A column-major bf16 matrix.
void init_layout(cublasLtMatrixLayout_t layout, std::int64_t rows, std::int64_t cols,
                 std::int64_t stride) {
  FOVEA_CUDA_CHECK(cublasLtMatrixLayoutInit(layout, CUDA_R_16BF, static_cast<std::uint64_t>(rows),
                                            static_cast<std::uint64_t>(cols), stride));
}

}  // namespace

bool CublasLtMatmul::has_epilogue(const Gemm& gemm) {
  return gemm.activation == ops::Activation::kNone ||
         (gemm.activation == ops::Activation::kGeluTanh && gemm.residual == nullptr);
}

CublasLtMatmul::CublasLtMatmul(const Gemm& gemm, int num_sms)
    : has_residual_(gemm.residual != nullptr) {
  FOVEA_CUDA_CHECK(cublasLtMatmulDescInit(&operation_, CUBLAS_COMPUTE_32F, CUDA_R_32F));
  set(&operation_, CUBLASLT_MATMUL_DESC_TRANSA, CUBLAS_OP_T);
  set(&operation_, CUBLASLT_MATMUL_DESC_EPILOGUE, epilogue_of(gemm));
  set(&operation_, CUBLASLT_MATMUL_DESC_SM_COUNT_TARGET, std::int32_t{num_sms});
  if (gemm.bias != nullptr) {
    set(&operation_, CUBLASLT_MATMUL_DESC_BIAS_POINTER, gemm.bias);
    set(&operation_, CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, CUDA_R_16BF);
  }
  init_layout(&a_, gemm.in_features, gemm.out_features, gemm.in_features);
  init_layout(&b_, gemm.in_features, gemm.rows, gemm.in_features);
  init_layout(&c_, gemm.out_features, gemm.rows,
              has_residual_ ? gemm.out_features : gemm.out_stride);
  init_layout(&d_, gemm.out_features, gemm.rows, gemm.out_stride);
}

std::vector<cublasLtMatmulAlgo_t> CublasLtMatmul::candidates(cublasLtHandle_t library,
                                                             int alignment, std::size_t scratch,
                                                             int at_most) const {
  cublasLtMatmulPreferenceOpaque_t preference{};
  FOVEA_CUDA_CHECK(cublasLtMatmulPreferenceInit(&preference));
  set(&preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, std::uint64_t{scratch});
  // Partial sums of a split matmul are added in f32; the other schemes round each to bf16.
  set(&preference, CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK,
      static_cast<std::uint32_t>(CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE));
  for (const auto operand :
       {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
        CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES}) {
    set(&preference, operand, static_cast<std::uint32_t>(alignment));
  }
  std::vector<cublasLtMatmulHeuristicResult_t> results(static_cast<std::size_t>(at_most));
  int found = 0;
  const cublasStatus_t status = cublasLtMatmulAlgoGetHeuristic(
      library, &operation_, &a_, &b_, &c_, &d_, &preference, at_most, results.data(), &found);
  if (status != CUBLAS_STATUS_NOT_SUPPORTED) FOVEA_CUDA_CHECK(status);
  std::vector<cublasLtMatmulAlgo_t> algorithms;
  for (int i = 0; i < found; ++i) {
    const auto& result = results[static_cast<std::size_t>(i)];
    if (result.state == CUBLAS_STATUS_SUCCESS) algorithms.push_back(result.algo);
  }
  return algorithms;
}

bool CublasLtMatmul::accepts(cublasLtHandle_t library, const cublasLtMatmulAlgo_t& algorithm,
                             std::size_t scratch) const {
  cublasLtMatmulHeuristicResult_t result{};
  const cublasStatus_t status =
      cublasLtMatmulAlgoCheck(library, &operation_, &a_, &b_, &c_, &d_, &algorithm, &result);
  return status == CUBLAS_STATUS_SUCCESS && result.workspaceSize <= scratch;
}

void CublasLtMatmul::run(cublasLtHandle_t library, const Gemm& gemm,
                         const cublasLtMatmulAlgo_t& algorithm, CudaStream& stream) const {
  const float alpha = 1.0f;
  const float beta = has_residual_ ? 1.0f : 0.0f;
  const void* const c = has_residual_ ? gemm.residual : gemm.out;
  const auto scratch = stream.library_scratch();
  FOVEA_CUDA_CHECK(cublasLtMatmul(library, &operation_, &alpha, gemm.weight, &a_, gemm.x, &b_,
                                  &beta, c, &c_, gemm.out, &d_, &algorithm, scratch.data(),
                                  scratch.size(), stream.handle()));
}

}  // namespace fovea::cuda
