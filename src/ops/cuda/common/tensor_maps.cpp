// Finds the driver's function that describes matrices to TMA.
#include "ops/cuda/common/tensor_maps.h"

#include <cuda_runtime_api.h>

#include "core/check.h"
#include "device/cuda/handles.h"

namespace fovea::cuda {

EncodeTiles find_encode_tiles() {
  constexpr unsigned kInterface = 12000;  // the first driver interface with the function
  void* function = nullptr;
  cudaDriverEntryPointQueryResult found = cudaDriverEntryPointSymbolNotFound;
  FOVEA_CUDA_CHECK(cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &function, kInterface,
                                                    cudaEnableDefault, &found));
  FOVEA_CHECK(found == cudaDriverEntryPointSuccess, kUnsupported,
              "the NVIDIA driver cannot describe matrices to TMA");
  return reinterpret_cast<EncodeTiles>(function);
}

}  // namespace fovea::cuda
