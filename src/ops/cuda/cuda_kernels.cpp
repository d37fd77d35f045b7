#include "ops/cuda/cuda_kernels.h"

namespace fovea::cuda {

CudaKernels::CudaKernels(const CudaDeviceOptions& options)
    : device_index_(options.index),
      attention_(options.attention),
      gemm_(options.index, options.cache_dir) {
  if (attention_ == CudaAttention::kCudnn) {
    cudnn_ = std::make_unique<const CudnnAttention>(options.index);
  }
  FOVEA_CUDA_CHECK(
      cudaDeviceGetAttribute(&num_multiprocessors_, cudaDevAttrMultiProcessorCount, device_index_));
}

}  // namespace fovea::cuda
