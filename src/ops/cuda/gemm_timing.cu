// Measures matrix-product algorithms on the stream that will use them.
#include <algorithm>
#include <limits>

#include "ops/cuda/bf16.cuh"
#include "ops/cuda/gemm_product.h"
#include "ops/cuda/gemm_timing.h"
#include "ops/cuda/launch.cuh"

namespace fovea::cuda {

namespace {

constexpr int kBlock = 256;
constexpr int kFillBlocks = 1024;
constexpr std::int64_t kRotatedBytes = std::int64_t{128} << 20;  // of weights; H100 has 50 MB of L2
constexpr int kWarmUps = 2;
constexpr float kTargetMs = 0.6f;  // of measured time per algorithm
constexpr int kMinRuns = 4;
constexpr int kMaxRuns = 24;
constexpr std::int64_t kElementBytes = sizeof(__nv_bfloat16);

/// Values in [-0.5, 0.5) from a hash of the position: all bits of the mantissa vary.
__global__ void __launch_bounds__(kBlock)
    fill_random_kernel(__nv_bfloat16* out, std::size_t count) {
  wait_for_predecessor();
  const std::size_t stride = std::size_t{gridDim.x} * kBlock;
  for (std::size_t i = std::size_t{blockIdx.x} * kBlock + threadIdx.x; i < count; i += stride) {
    auto bits = static_cast<std::uint32_t>(i) * 2654435761u;
    bits = (bits ^ (bits >> 15)) * 2246822519u;
    bits ^= bits >> 13;
    out[i] = __float2bfloat16_rn(static_cast<float>(bits) * 0x1p-32f - 0.5f);
  }
}

struct MemoryTraits {
  using Handle = std::byte*;
  static void destroy(Handle handle) noexcept { (void)cudaFree(handle); }
};
using Memory = UniqueHandle<MemoryTraits>;

/// Random bf16 operands, or nothing if memory is short.
Memory random_operand(CudaStream& stream, std::int64_t count) {
  std::byte* data = nullptr;
  const auto elements = static_cast<std::size_t>(count);
  if (cudaMalloc(&data, elements * kElementBytes) != cudaSuccess) {
    (void)cudaGetLastError();
    return {};
  }
  Memory memory(data);
  launch(stream, &fill_random_kernel, dim3(kFillBlocks), dim3(kBlock), 0,
         reinterpret_cast<__nv_bfloat16*>(data), elements);
  return memory;
}

UniqueEvent make_event() {
  cudaEvent_t event = nullptr;
  FOVEA_CUDA_CHECK(cudaEventCreate(&event));
  return UniqueEvent(event);
}

/// Runs one algorithm again and again over rotating weights.
class Stopwatch {
 public:
  Stopwatch(cublasLtHandle_t library, CudaStream& stream, const Gemm& gemm,
            const std::byte* weights, std::int64_t copies)
      : library_(library),
        stream_(stream),
        gemm_(gemm),
        product_(gemm),
        weights_(weights),
        copies_(copies) {}

  /// Mean milliseconds of `runs` products, or infinity if the library refuses the algorithm.
  float measure(const cublasLtMatmulAlgo_t& algorithm, int runs) {
    try {
      run(algorithm, kWarmUps);
      FOVEA_CUDA_CHECK(cudaEventRecord(begin_.get(), stream_.handle()));
      run(algorithm, runs);
      FOVEA_CUDA_CHECK(cudaEventRecord(end_.get(), stream_.handle()));
    } catch (const Error&) {
      return std::numeric_limits<float>::infinity();
    }
    FOVEA_CUDA_CHECK(cudaEventSynchronize(end_.get()));
    float total_ms = 0.0f;
    FOVEA_CUDA_CHECK(cudaEventElapsedTime(&total_ms, begin_.get(), end_.get()));
    return total_ms / static_cast<float>(runs);
  }

 private:
  void run(const cublasLtMatmulAlgo_t& algorithm, int times) {
    const std::int64_t step = gemm_.in_features * gemm_.out_features * kElementBytes;
    for (int i = 0; i < times; ++i) {
      next_ = (next_ + 1) % copies_;
      gemm_.weight = weights_ + next_ * step;
      product_.run(library_, gemm_, algorithm, stream_);
    }
  }

  cublasLtHandle_t library_;
  CudaStream& stream_;
  Gemm gemm_;
  GemmProduct product_;
  const std::byte* weights_;
  std::int64_t copies_;
  std::int64_t next_ = 0;
  UniqueEvent begin_ = make_event();
  UniqueEvent end_ = make_event();
};

}  // namespace

cublasLtMatmulAlgo_t fastest_algorithm(cublasLtHandle_t library, CudaStream& stream,
                                       const Gemm& gemm,
                                       std::span<const cublasLtMatmulAlgo_t> candidates) {
  const std::int64_t weight_size = gemm.in_features * gemm.out_features;
  const std::int64_t copies =
      std::max<std::int64_t>(1, kRotatedBytes / (weight_size * kElementBytes));
  const Memory weights = random_operand(stream, weight_size * copies);
  const Memory x = random_operand(stream, gemm.rows * gemm.in_features);
  const Memory out = random_operand(stream, gemm.rows * gemm.out_stride);
  const Memory bias = random_operand(stream, gemm.out_features);
  if (!weights.get() || !x.get() || !out.get() || !bias.get()) return candidates.front();

  Gemm trial = gemm;
  trial.x = x.get();
  trial.weight = weights.get();
  trial.bias = gemm.bias != nullptr ? bias.get() : nullptr;
  // In place, as towers use it; beta = 1 makes the values grow a little per run, never to infinity.
  trial.residual = gemm.residual != nullptr ? out.get() : nullptr;
  trial.out = out.get();
  Stopwatch stopwatch(library, stream, trial, weights.get(), copies);

  const cublasLtMatmulAlgo_t* fastest = &candidates.front();
  float shortest_ms = std::numeric_limits<float>::infinity();
  for (const cublasLtMatmulAlgo_t& candidate : candidates) {
    const float first_ms = stopwatch.measure(candidate, 1);
    if (first_ms > 2.0f * shortest_ms) continue;
    const int runs = static_cast<int>(std::clamp(kTargetMs / first_ms, static_cast<float>(kMinRuns),
                                                 static_cast<float>(kMaxRuns)));
    const float ms = stopwatch.measure(candidate, runs);
    if (ms < shortest_ms) {
      shortest_ms = ms;
      fastest = &candidate;
    }
  }
  FOVEA_CUDA_CHECK(cudaStreamSynchronize(stream.handle()));
  return *fastest;
}

}  // namespace fovea::cuda
