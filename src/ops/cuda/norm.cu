// LayerNorm and RMSNorm over the last axis, bf16 rows, f32 parameters and statistics.
//
// One block per row, grid-stride up to the live count. Up to 8192 columns in multiples of 8, thread
// t owns columns [8 t, 8 t + 8): it keeps their parameters in registers from row to row, reads the
// row once with one 16-byte load and holds it for the centred second pass. Other widths take a slow
// kernel that reads the row three times.
// Sums run in a fixed order: equal inputs give bit-equal outputs, captured or not.
// Traffic: 4 * rows * cols bytes. Rounding: LayerNorm once at the end; RMSNorm also after the
// normalisation, as its contract says. `out` may be `x`.
#include "ops/cuda/bf16.cuh"
#include "ops/cuda/cuda_kernels.h"
#include "ops/cuda/launch.cuh"

namespace fovea::cuda {

namespace {

constexpr int kWarp = 32;
constexpr int kAnyWidthThreads = 256;
constexpr int kMaxThreads = 1024;
constexpr int kWidth = 8;  // bf16 elements of a 16-byte load
constexpr int kThreadsPerMultiprocessor = 2048;

/// Everything a norm kernel needs; `bias` is null for RMSNorm.
struct NormWork {
  const __nv_bfloat16* x;
  const float* weight;
  const float* bias;
  float epsilon;
  std::int64_t rows;
  int cols;
  const std::int32_t* live;
  __nv_bfloat16* out;
};

/// Sum over the block, given to every thread. `scratch` holds one float per warp; it must not be
/// that of the previous call.
__device__ float block_sum(float value, float* scratch) {
#pragma unroll
  for (int offset = kWarp / 2; offset > 0; offset /= 2) {
    value += __shfl_xor_sync(0xffffffffu, value, offset);
  }
  if (threadIdx.x % kWarp == 0) scratch[threadIdx.x / kWarp] = value;
  __syncthreads();
  float total = 0.0f;
  for (unsigned warp = 0; warp < blockDim.x / kWarp; ++warp) total += scratch[warp];
  return total;
}

template <bool kCentred>
__device__ float finish(float value, float inv_std, float weight, float bias) {
  if constexpr (kCentred) return value * inv_std * weight + bias;
  return __bfloat162float(__float2bfloat16_rn(value * inv_std)) * weight;
}

/// kCentred: LayerNorm, otherwise RMSNorm. The block has at least cols / 8 threads.
template <bool kCentred>
__global__ void __launch_bounds__(kMaxThreads) norm_kernel(NormWork w) {
  __shared__ float sums[kMaxThreads / kWarp];
  __shared__ float squares[kMaxThreads / kWarp];
  const int col = static_cast<int>(threadIdx.x) * kWidth;
  const bool active = col < w.cols;
  const auto cols = static_cast<float>(w.cols);
  float weight[kWidth] = {};
  float bias[kWidth] = {};
  if (active) {
    load_floats(w.weight + col, weight);  // constant: no need to wait for the predecessor
    if constexpr (kCentred) load_floats(w.bias + col, bias);
  }
  wait_for_predecessor();
  const std::int64_t live = live_rows(w.live, w.rows);
  for (std::int64_t row = blockIdx.x; row < live; row += gridDim.x) {
    float values[kWidth] = {};
    if (active) load_floats(w.x + row * w.cols + col, values);
    if constexpr (kCentred) {
      float sum = 0.0f;
#pragma unroll
      for (int j = 0; j < kWidth; ++j) sum += values[j];
      const float mean = block_sum(sum, sums) / cols;
#pragma unroll
      for (int j = 0; j < kWidth; ++j) values[j] = active ? values[j] - mean : 0.0f;
    }
    float square = 0.0f;
#pragma unroll
    for (int j = 0; j < kWidth; ++j) square += values[j] * values[j];
    const float inv_std = rsqrtf(block_sum(square, squares) / cols + w.epsilon);
#pragma unroll
    for (int j = 0; j < kWidth; ++j) {
      values[j] = finish<kCentred>(values[j], inv_std, weight[j], bias[j]);
    }
    if (active) store_floats(w.out + row * w.cols + col, values);
    if constexpr (!kCentred) __syncthreads();  // with one sum per row its scratch is reused at once
  }
}

/// Any width. A thread reads only the columns it writes, so `out` may be `x`.
template <bool kCentred>
__global__ void __launch_bounds__(kAnyWidthThreads) norm_any_width_kernel(NormWork w) {
  __shared__ float sums[kAnyWidthThreads / kWarp];
  __shared__ float squares[kAnyWidthThreads / kWarp];
  wait_for_predecessor();
  const auto cols = static_cast<float>(w.cols);
  const std::int64_t live = live_rows(w.live, w.rows);

  for (std::int64_t row = blockIdx.x; row < live; row += gridDim.x) {
    const __nv_bfloat16* const x = w.x + row * w.cols;
    const int first = static_cast<int>(threadIdx.x);
    float sum = 0.0f;
    if constexpr (kCentred) {
      for (int c = first; c < w.cols; c += kAnyWidthThreads) sum += __bfloat162float(x[c]);
    }
    const float mean = kCentred ? block_sum(sum, sums) / cols : 0.0f;

    float square = 0.0f;
    for (int c = first; c < w.cols; c += kAnyWidthThreads) {
      const float centred = __bfloat162float(x[c]) - mean;
      square += centred * centred;
    }
    const float inv_std = rsqrtf(block_sum(square, squares) / cols + w.epsilon);

    for (int c = first; c < w.cols; c += kAnyWidthThreads) {
      const float bias = kCentred ? w.bias[c] : 0.0f;
      const float y = finish<kCentred>(__bfloat162float(x[c]) - mean, inv_std, w.weight[c], bias);
      w.out[row * w.cols + c] = __float2bfloat16_rn(y);
    }
    if constexpr (!kCentred) __syncthreads();  // as above
  }
}

template <bool kCentred>
void launch_norm(CudaStream& stream, const NormWork& work, int num_multiprocessors) {
  const bool vectors = work.cols % kWidth == 0 && work.cols <= kMaxThreads * kWidth &&
                       is_aligned(work.x, 16) && is_aligned(work.out, 16) &&
                       is_aligned(work.weight, 16) && is_aligned(work.bias, 16);
  const int threads = vectors ? (work.cols / kWidth + kWarp - 1) / kWarp * kWarp : kAnyWidthThreads;
  const std::int64_t resident =
      std::int64_t{kThreadsPerMultiprocessor / threads} * num_multiprocessors;
  launch(stream, vectors ? &norm_kernel<kCentred> : &norm_any_width_kernel<kCentred>,
         dim3(static_cast<unsigned>(std::min(work.rows, resident))),
         dim3(static_cast<unsigned>(threads)), 0, work);
}

}  // namespace

void CudaKernels::layer_norm(Stream& stream, const ops::LayerNormArgs& args) const {
  launch_norm<true>(static_cast<CudaStream&>(stream),
                    {.x = args.x.as<__nv_bfloat16>(),
                     .weight = args.weight.as<float>(),
                     .bias = args.bias.as<float>(),
                     .epsilon = args.epsilon,
                     .rows = args.x.shape[0],
                     .cols = static_cast<int>(args.x.shape[1]),
                     .live = args.rows.count,
                     .out = args.out.as<__nv_bfloat16>()},
                    num_multiprocessors_);
}

void CudaKernels::rms_norm(Stream& stream, const ops::RmsNormArgs& args) const {
  launch_norm<false>(static_cast<CudaStream&>(stream),
                     {.x = args.x.as<__nv_bfloat16>(),
                      .weight = args.weight.as<float>(),
                      .bias = nullptr,
                      .epsilon = args.epsilon,
                      .rows = args.x.shape[0],
                      .cols = static_cast<int>(args.x.shape[1]),
                      .live = args.rows.count,
                      .out = args.out.as<__nv_bfloat16>()},
                     num_multiprocessors_);
}

}  // namespace fovea::cuda
