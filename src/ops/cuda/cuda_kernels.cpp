#include "ops/cuda/cuda_kernels.h"

#include <utility>

namespace fovea::cuda {

CudaKernels::CudaKernels(int device_index, std::string gemm_choices_path)
    : device_index_(device_index), gemm_(device_index, std::move(gemm_choices_path)) {
  FOVEA_CUDA_CHECK(
      cudaDeviceGetAttribute(&num_multiprocessors_, cudaDevAttrMultiProcessorCount, device_index_));
}

}  // namespace fovea::cuda
