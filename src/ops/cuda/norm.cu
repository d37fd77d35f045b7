// LayerNorm and RMSNorm over the last axis, bf16 rows, f32 parameters and statistics.
//
// A row belongs to one warp up to 2048 columns, to a block of 256 threads up to 8192. Thread t of
// the row owns 8-column chunks t, t + threads, ...; the row is read once, with 16-byte loads, and
// stays in registers for the centred second pass. Rows are visited grid-stride up to the live
// count. Other widths (not a multiple of 8, or wider) take a slow kernel that reads the row three
// times. Sums run in a fixed order: equal inputs give bit-equal outputs, captured or not. Traffic:
// 4 * rows * cols bytes, parameters from L1. Rounding: LayerNorm once at the end; RMSNorm also
// after the normalisation, as its contract says. `out` may be `x`.
#include "ops/cuda/bf16.cuh"
#include "ops/cuda/cuda_kernels.h"
#include "ops/cuda/launch.cuh"

namespace fovea::cuda {

namespace {

constexpr int kWarp = 32;
constexpr int kBlock = 256;
constexpr int kWidth = 8;  // bf16 elements of a 16-byte load

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

/// Sum over the kThreads threads that share a row, given to all of them. `scratch` holds one float
/// per warp of the block.
template <int kThreads>
__device__ float row_sum(float value, float* scratch) {
#pragma unroll
  for (int offset = kWarp / 2; offset > 0; offset /= 2) {
    value += __shfl_xor_sync(0xffffffffu, value, offset);
  }
  if constexpr (kThreads > kWarp) {
    __syncthreads();  // the previous sum has been read
    if (threadIdx.x % kWarp == 0) scratch[threadIdx.x / kWarp] = value;
    __syncthreads();
    value = 0.0f;
#pragma unroll
    for (int warp = 0; warp < kThreads / kWarp; ++warp) value += scratch[warp];
  }
  return value;
}

template <bool kCentred>
__device__ float finish(float value, float inv_std, float weight, float bias) {
  if constexpr (kCentred) return value * inv_std * weight + bias;
  return __bfloat162float(__float2bfloat16_rn(value * inv_std)) * weight;
}

/// kCentred: LayerNorm, otherwise RMSNorm. cols is a multiple of 8 and at most
/// kThreads * kChunks * 8.
template <bool kCentred, int kThreads, int kChunks>
__global__ void __launch_bounds__(kBlock) norm_kernel(NormWork w) {
  __shared__ float scratch[kBlock / kWarp];
  wait_for_predecessor();
  constexpr int kRowsPerBlock = kBlock / kThreads;
  const int lane = static_cast<int>(threadIdx.x) % kThreads;
  const auto cols = static_cast<float>(w.cols);
  const std::int64_t live = live_rows(w.live, w.rows);
  const std::int64_t first = std::int64_t{blockIdx.x} * kRowsPerBlock + threadIdx.x / kThreads;

  for (std::int64_t row = first; row < live; row += std::int64_t{gridDim.x} * kRowsPerBlock) {
    float values[kChunks][kWidth];
    float sum = 0.0f;
#pragma unroll
    for (int i = 0; i < kChunks; ++i) {
      const int col = (lane + i * kThreads) * kWidth;
      if (col < w.cols) load_floats(w.x + row * w.cols + col, values[i]);
    }
    if constexpr (kCentred) {
#pragma unroll
      for (int i = 0; i < kChunks; ++i) {
        if ((lane + i * kThreads) * kWidth >= w.cols) continue;
#pragma unroll
        for (int j = 0; j < kWidth; ++j) sum += values[i][j];
      }
    }
    const float mean = kCentred ? row_sum<kThreads>(sum, scratch) / cols : 0.0f;

    float squares = 0.0f;
#pragma unroll
    for (int i = 0; i < kChunks; ++i) {
      if ((lane + i * kThreads) * kWidth >= w.cols) continue;
#pragma unroll
      for (int j = 0; j < kWidth; ++j) {
        values[i][j] -= mean;
        squares += values[i][j] * values[i][j];
      }
    }
    const float inv_std = rsqrtf(row_sum<kThreads>(squares, scratch) / cols + w.epsilon);

#pragma unroll
    for (int i = 0; i < kChunks; ++i) {
      const int col = (lane + i * kThreads) * kWidth;
      if (col >= w.cols) continue;
      float weight[kWidth];
      float bias[kWidth] = {};
      load_floats(w.weight + col, weight);
      if constexpr (kCentred) load_floats(w.bias + col, bias);
#pragma unroll
      for (int j = 0; j < kWidth; ++j) {
        values[i][j] = finish<kCentred>(values[i][j], inv_std, weight[j], bias[j]);
      }
      store_floats(w.out + row * w.cols + col, values[i]);
    }
  }
}

/// Any width. A thread reads only the columns it writes, so `out` may be `x`.
template <bool kCentred>
__global__ void __launch_bounds__(kBlock) norm_any_width_kernel(NormWork w) {
  __shared__ float scratch[kBlock / kWarp];
  wait_for_predecessor();
  const auto cols = static_cast<float>(w.cols);
  const std::int64_t live = live_rows(w.live, w.rows);

  for (std::int64_t row = blockIdx.x; row < live; row += gridDim.x) {
    const __nv_bfloat16* const x = w.x + row * w.cols;
    const int first = static_cast<int>(threadIdx.x);
    float sum = 0.0f;
    if constexpr (kCentred) {
      for (int c = first; c < w.cols; c += kBlock) sum += __bfloat162float(x[c]);
    }
    const float mean = kCentred ? row_sum<kBlock>(sum, scratch) / cols : 0.0f;

    float squares = 0.0f;
    for (int c = first; c < w.cols; c += kBlock) {
      const float centred = __bfloat162float(x[c]) - mean;
      squares += centred * centred;
    }
    const float inv_std = rsqrtf(row_sum<kBlock>(squares, scratch) / cols + w.epsilon);

    for (int c = first; c < w.cols; c += kBlock) {
      const float bias = kCentred ? w.bias[c] : 0.0f;
      const float y = finish<kCentred>(__bfloat162float(x[c]) - mean, inv_std, w.weight[c], bias);
      w.out[row * w.cols + c] = __float2bfloat16_rn(y);
    }
  }
}

template <bool kCentred, int kThreads, int kChunks>
void launch_chunks(CudaStream& stream, const NormWork& work, int num_multiprocessors) {
  launch(stream, &norm_kernel<kCentred, kThreads, kChunks>,
         grid_for(work.rows, kBlock / kThreads, num_multiprocessors), dim3(kBlock), 0, work);
}

template <bool kCentred>
void launch_norm(CudaStream& stream, const NormWork& work, int num_multiprocessors) {
  const int chunks_per_warp = (work.cols + kWarp * kWidth - 1) / (kWarp * kWidth);
  const bool vectors = work.cols % kWidth == 0 && is_aligned(work.x, 16) &&
                       is_aligned(work.out, 16) && is_aligned(work.weight, 16) &&
                       is_aligned(work.bias, 16);
  constexpr int kMaxChunksPerWarp = 32;
  switch (vectors ? chunks_per_warp : kMaxChunksPerWarp + 1) {
    case 1: return launch_chunks<kCentred, kWarp, 1>(stream, work, num_multiprocessors);
    case 2: return launch_chunks<kCentred, kWarp, 2>(stream, work, num_multiprocessors);
    case 3: return launch_chunks<kCentred, kWarp, 3>(stream, work, num_multiprocessors);
    case 4: return launch_chunks<kCentred, kWarp, 4>(stream, work, num_multiprocessors);
    case 5: return launch_chunks<kCentred, kWarp, 5>(stream, work, num_multiprocessors);
    case 6: return launch_chunks<kCentred, kWarp, 6>(stream, work, num_multiprocessors);
    case 7:
    case 8: return launch_chunks<kCentred, kWarp, 8>(stream, work, num_multiprocessors);
    default: break;
  }
  if (!vectors || chunks_per_warp > kMaxChunksPerWarp) {
    return launch(stream, &norm_any_width_kernel<kCentred>,
                  grid_for(work.rows, 1, num_multiprocessors), dim3(kBlock), 0, work);
  }
  if (chunks_per_warp <= 16) {
    return launch_chunks<kCentred, kBlock, 2>(stream, work, num_multiprocessors);
  }
  if (chunks_per_warp <= 24) {
    return launch_chunks<kCentred, kBlock, 3>(stream, work, num_multiprocessors);
  }
  launch_chunks<kCentred, kBlock, 4>(stream, work, num_multiprocessors);
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
