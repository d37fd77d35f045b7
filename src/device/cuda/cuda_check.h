#pragma once

#include <cublasLt.h>
#include <cuda_runtime_api.h>

#include <string>

#include "core/check.h"

namespace fovea::cuda {

/// Throws Error(kOutOfMemory) for a lack of memory, Error(kDevice) for every other failure, with
/// the call and the library's own words.
inline void check(cudaError_t status, const char* call) {
  if (status == cudaSuccess) [[likely]]
    return;
  (void)cudaGetLastError();  // the failure is reported here; do not report it to the next call too
  const std::string message = cat("cuda: ", call, " failed: ", cudaGetErrorString(status), " (",
                                  cudaGetErrorName(status), ")");
  FOVEA_CHECK(status != cudaErrorMemoryAllocation, kOutOfMemory, message);
  throw Error(ErrorCode::kDevice, message);
}
/// The same.
inline void check(cublasStatus_t status, const char* call) {
  if (status == CUBLAS_STATUS_SUCCESS) [[likely]]
    return;
  const std::string message = cat("cuBLASLt: ", call, " failed: ", cublasLtGetStatusString(status));
  FOVEA_CHECK(status != CUBLAS_STATUS_ALLOC_FAILED, kOutOfMemory, message);
  throw Error(ErrorCode::kDevice, message);
}

}  // namespace fovea::cuda

/// Makes a call into a CUDA library and throws if it reports a failure.
#define FOVEA_CUDA_CHECK(call) ::fovea::cuda::check((call), #call)
