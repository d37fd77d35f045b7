#pragma once

#include <cublasLt.h>
#include <cuda_runtime_api.h>

namespace fovea::cuda {

/// Throw Error(kOutOfMemory) for a lack of memory, Error(kDevice) for every other failure, with the
/// call and the library's own words.
void check(cudaError_t status, const char* call);
void check(cublasStatus_t status, const char* call);

}  // namespace fovea::cuda

/// Makes a call into a CUDA library and throws if it reports a failure.
#define FOVEA_CUDA_CHECK(call) ::fovea::cuda::check((call), #call)
