// Describes arrays to TMA.
#include "ops/cuda/common/tensor_maps.h"

#include <cuda_runtime_api.h>

#include "core/check.h"
#include "device/cuda/handles.h"

namespace fovea::cuda {

TensorMaps::TensorMaps() {
  constexpr unsigned kInterface = 12000;  // the first driver interface with the function
  void* function = nullptr;
  cudaDriverEntryPointQueryResult found = cudaDriverEntryPointSymbolNotFound;
  FOVEA_CUDA_CHECK(cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &function, kInterface,
                                                    cudaEnableDefault, &found));
  FOVEA_CHECK(found == cudaDriverEntryPointSuccess, kUnsupported,
              "the NVIDIA driver cannot describe matrices to TMA");
  encode_ = reinterpret_cast<Encode>(function);
}

CUtensorMap TensorMaps::describe(const TiledArray& array) const {
  std::array<cuuint64_t, TiledArray::kMostDims> sizes{};
  std::array<cuuint64_t, TiledArray::kMostDims> strides{};
  std::array<cuuint32_t, TiledArray::kMostDims> tile{};
  std::array<cuuint32_t, TiledArray::kMostDims> every{};
  for (std::size_t i = 0; i < array.dims; ++i) {
    sizes[i] = static_cast<cuuint64_t>(array.sizes[i]);
    tile[i] = static_cast<cuuint32_t>(array.tile[i]);
    every[i] = 1;
    if (i + 1 < array.dims)
      strides[i] = static_cast<cuuint64_t>(array.strides[i] * array.element_bytes);
  }
  const std::int64_t row_bytes = array.tile[0] * array.element_bytes;
  const CUtensorMapSwizzle swizzle = row_bytes == 128  ? CU_TENSOR_MAP_SWIZZLE_128B
                                     : row_bytes == 64 ? CU_TENSOR_MAP_SWIZZLE_64B
                                                       : CU_TENSOR_MAP_SWIZZLE_NONE;
  const CUtensorMapDataType type =
      array.element_bytes == 2 ? CU_TENSOR_MAP_DATA_TYPE_BFLOAT16 : CU_TENSOR_MAP_DATA_TYPE_UINT8;
  CUtensorMap map{};
  // The interface takes a plain pointer although the array is only described, not written.
  void* const address = reinterpret_cast<void*>(reinterpret_cast<std::uintptr_t>(array.data));
  const auto encode = [&] {
    return encode_(&map, type, array.dims, address, sizes.data(), strides.data(), tile.data(),
                   every.data(), CU_TENSOR_MAP_INTERLEAVE_NONE, swizzle,
                   CU_TENSOR_MAP_L2_PROMOTION_L2_256B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  };
  CUresult result = encode();
  if (result == CUDA_ERROR_INVALID_CONTEXT) {  // a thread has none before it calls the runtime
    FOVEA_CUDA_CHECK(cudaFree(nullptr));
    result = encode();
  }
  FOVEA_CHECK(result == CUDA_SUCCESS, kDevice, "cuTensorMapEncodeTiled failed with ",
              static_cast<int>(result), " for ", array.sizes[0], " columns and ", array.sizes[1],
              " rows");
  return map;
}

}  // namespace fovea::cuda
