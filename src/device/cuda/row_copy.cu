// Copies of rows that change their distance or dtype, and cross from GPU to GPU.
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <algorithm>

#include "core/check.h"
#include "device/cuda/cuda_stream.h"

namespace fovea::cuda {

namespace {

constexpr unsigned kBlock = 256;
constexpr std::int64_t kMostBlocks = 4096;

__device__ float widen(float value) { return value; }
__device__ float widen(__half value) { return __half2float(value); }
__device__ float widen(__nv_bfloat16 value) { return __bfloat162float(value); }

__device__ void narrow(float value, float& out) { out = value; }
__device__ void narrow(float value, __half& out) { out = __float2half_rn(value); }
__device__ void narrow(float value, __nv_bfloat16& out) { out = __float2bfloat16_rn(value); }

/// A block per row, grid-stride.
template <class From, class To>
__global__ void __launch_bounds__(kBlock) convert_rows_kernel(RowCopy copy) {
  for (std::int64_t row = blockIdx.x; row < copy.rows; row += gridDim.x) {
    const auto* const from = reinterpret_cast<const From*>(copy.from + row * copy.from_stride);
    auto* const to = reinterpret_cast<To*>(copy.to + row * copy.to_stride);
    for (std::int64_t c = threadIdx.x; c < copy.width; c += kBlock) narrow(widen(from[c]), to[c]);
  }
}

template <class From>
auto kernel_to(DType to) {
  switch (to) {
    case DType::kBF16: return &convert_rows_kernel<From, __nv_bfloat16>;
    case DType::kF16: return &convert_rows_kernel<From, __half>;
    default: return &convert_rows_kernel<From, float>;
  }
}

auto kernel_of(DType from, DType to) {
  switch (from) {
    case DType::kBF16: return kernel_to<__nv_bfloat16>(to);
    case DType::kF16: return kernel_to<__half>(to);
    default: return kernel_to<float>(to);
  }
}

/// Memory of the stream's GPU for as long as work submitted in its scope runs.
class StreamMemory {
 public:
  StreamMemory(cudaStream_t stream, std::size_t bytes) : stream_(stream) {
    void* data = nullptr;
    FOVEA_CUDA_CHECK(cudaMallocAsync(&data, bytes, stream));
    data_ = static_cast<std::byte*>(data);
  }
  ~StreamMemory() { (void)cudaFreeAsync(data_, stream_); }
  StreamMemory(const StreamMemory&) = delete;
  StreamMemory& operator=(const StreamMemory&) = delete;
  [[nodiscard]] std::byte* data() const noexcept { return data_; }

 private:
  cudaStream_t stream_;
  std::byte* data_ = nullptr;
};

/// Without a change of dtype, between any two memories.
void copy_bytes(const RowCopy& copy, cudaStream_t stream) {
  const std::size_t bytes = copy.from_row_bytes();
  const auto rows = static_cast<std::size_t>(copy.rows);
  if (copy.is_packed()) {
    FOVEA_CUDA_CHECK(cudaMemcpyAsync(copy.to, copy.from, rows * bytes, cudaMemcpyDefault, stream));
  } else {
    FOVEA_CUDA_CHECK(cudaMemcpy2DAsync(copy.to, copy.to_stride, copy.from, copy.from_stride, bytes,
                                       rows, cudaMemcpyDefault, stream));
  }
}

/// With a change of dtype, in memory of the stream's GPU.
void convert(const RowCopy& copy, cudaStream_t stream) {
  const auto blocks = static_cast<unsigned>(std::min(copy.rows, kMostBlocks));
  kernel_of(copy.from_dtype, copy.to_dtype)<<<blocks, kBlock, 0, stream>>>(copy);
  FOVEA_CUDA_CHECK(cudaGetLastError());
}

bool is_here(const void* data, int device_index) {
  cudaPointerAttributes found{};
  FOVEA_CUDA_CHECK(cudaPointerGetAttributes(&found, data));
  return found.type == cudaMemoryTypeManaged ||
         (found.type == cudaMemoryTypeDevice && found.device == device_index);
}

}  // namespace

void CudaStream::copy_rows(const RowCopy& copy) {
  if (copy.rows == 0 || copy.width == 0) return;
  const DeviceGuard guard(device_index_);
  if (copy.from_dtype == copy.to_dtype) {
    copy_bytes(copy, handle());
  } else if (!is_here(copy.from, device_index_)) {  // first to this GPU as they are
    const std::size_t row = copy.from_row_bytes();
    const StreamMemory here(handle(), static_cast<std::size_t>(copy.rows) * row);
    RowCopy fetch = copy;
    fetch.to = here.data();
    fetch.to_dtype = copy.from_dtype;
    fetch.to_stride = row;
    copy_bytes(fetch, handle());
    RowCopy rest = copy;
    rest.from = here.data();
    rest.from_stride = row;
    copy_rows(rest);
  } else if (!is_here(copy.to, device_index_)) {  // converted here, then over there
    const std::size_t row = copy.to_row_bytes();
    const StreamMemory here(handle(), static_cast<std::size_t>(copy.rows) * row);
    RowCopy converted = copy;
    converted.to = here.data();
    converted.to_stride = row;
    convert(converted, handle());
    RowCopy rest = copy;
    rest.from = here.data();
    rest.from_dtype = copy.to_dtype;
    rest.from_stride = row;
    copy_bytes(rest, handle());
  } else {
    convert(copy, handle());
  }
}

}  // namespace fovea::cuda
