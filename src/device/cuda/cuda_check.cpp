// What failures of the CUDA libraries become.
#include "device/cuda/cuda_check.h"

#include "core/check.h"

namespace fovea::cuda {

void check(cudaError_t status, const char* call) {
  if (status == cudaSuccess) [[likely]]
    return;
  (void)cudaGetLastError();  // the failure is reported here; do not report it to the next call too
  const std::string message = cat("cuda: ", call, " failed: ", cudaGetErrorString(status), " (",
                                  cudaGetErrorName(status), ")");
  FOVEA_CHECK(status != cudaErrorMemoryAllocation, kOutOfMemory, message);
  throw Error(ErrorCode::kDevice, message);
}

void check(cublasStatus_t status, const char* call) {
  if (status == CUBLAS_STATUS_SUCCESS) [[likely]]
    return;
  const std::string message = cat("cuBLASLt: ", call, " failed: ", cublasLtGetStatusString(status));
  FOVEA_CHECK(status != CUBLAS_STATUS_ALLOC_FAILED, kOutOfMemory, message);
  throw Error(ErrorCode::kDevice, message);
}

}  // namespace fovea::cuda
