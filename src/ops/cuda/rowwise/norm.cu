// LayerNorm and RMSNorm over the last axis, bf16 rows, f32 parameters and statistics.
//
// Three kernels, all grid-stride up to the live count. Few rows: one CTA per row; thread t owns
// columns [8 t, 8 t + 8), has their parameters in registers before the predecessor ends, reads the
// row once with one 16-byte load and holds it for the centred second pass. Many rows of up to 2048
// columns: one warp per row, which needs no barrier and keeps several loads per lane in flight. It
// has the parameters in registers, too, so there are no more warps than these have room for.
// Widths that 16-byte loads do not suit take a slow kernel that reads the row three times.
// Sums run in a fixed order: equal inputs give bit-equal outputs, captured or not.
// Traffic: 4 * rows * cols bytes, and 2 more with a residual. Rounding: LayerNorm once at the end;
// RMSNorm also after the normalisation, as its contract says. `out` may be `x` or `residual`. Rows
// that a quantized layer reads leave as E4M3 with the scale of their largest number, from f32.
#include "core/check.h"
#include "ops/cuda/common/bf16.cuh"
#include "ops/cuda/common/lanes.cuh"
#include "ops/cuda/common/launch.cuh"
#include "ops/cuda/common/operands.h"
#include "ops/cuda/rowwise/quantize.cuh"
#include "ops/cuda/rowwise/rowwise.h"

namespace fovea::cuda {

namespace {

constexpr int kAnyWidthThreads = 256;
constexpr int kMaxThreads = 1024;
constexpr int kWidth = 8;  // bf16 elements of a 16-byte load
constexpr int kThreadsPerMultiprocessor = 2048;
// The kernel with one warp per row: for many rows, and rows that a warp can hold.
constexpr int kRowsPerBlock = 2;
constexpr std::int64_t kManyRows = 513;  // as fast in either on an H100
constexpr int kMaxPieces = 8;            // of 256 columns
constexpr int kMaxWarpCols = kMaxPieces * kWarp * kWidth;
/// Times pieces: warps of an SM whose registers hold rows and parameters.
constexpr int kPiecesPerMultiprocessor = 64;

/// Everything a norm kernel needs; `bias` is null for RMSNorm, `residual` where nothing is added.
struct NormWork {
  const __nv_bfloat16* x;
  const float* weight;
  const float* bias;
  const __nv_bfloat16* residual;
  float epsilon;
  std::int64_t rows;
  int cols;
  const std::int32_t* live;
  __nv_bfloat16* out;
  ops::QuantizedRows quantized;  ///< instead of out, unless values is null
};

/// Sum over the warp, given to every lane.
__device__ float warp_sum(float value) {
#pragma unroll
  for (int offset = kWarp / 2; offset > 0; offset /= 2) {
    value += __shfl_xor_sync(kAllLanes, value, offset);
  }
  return value;
}

/// Sum over the CTA, given to every thread. `scratch` holds one float per warp; it must not be
/// that of the previous call.
__device__ float block_sum(float value, float* scratch) {
  value = warp_sum(value);
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

/// values += residual[at ...], where there is a residual.
template <int kCount>
__device__ void add_residual(const NormWork& w, std::int64_t at, float (&values)[kCount]) {
  if (w.residual == nullptr) return;
  float residual[kCount];
  load_floats(w.residual + at, residual);
#pragma unroll
  for (int j = 0; j < kCount; ++j) values[j] += residual[j];
}

/// kCentred: LayerNorm, otherwise RMSNorm. The CTA has at least cols / 8 threads.
template <bool kCentred>
__global__ void __launch_bounds__(kMaxThreads) norm_kernel(NormWork w) {
  __shared__ float sums[kMaxThreads / kWarp];
  __shared__ float squares[kMaxThreads / kWarp];
  __shared__ RowExtent extents[kMaxThreads / kWarp];
  let_successor_start();
  const int col = static_cast<int>(threadIdx.x) * kWidth;
  const bool active = col < w.cols;
  const auto cols = static_cast<float>(w.cols);
  float weight[kWidth] = {};
  float bias[kWidth] = {};
  if (active) {
    load_floats(w.weight + col, weight);  // constant: no need to wait for the predecessor
    if constexpr (kCentred) load_floats(w.bias + col, bias);
  }
  const std::int64_t live = live_rows(w.live, w.rows);
  wait_for_predecessor();
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
    if (w.quantized.values != nullptr) {
      RowExtent mine;
      if (active) mine.add(values);
      const RowExtent extent = extent_of_cta(mine, extents);
      if (threadIdx.x == 0) extent.store(w.quantized, row);
      if (active) {
        store_e4m3(w.quantized.values + row * w.cols + col, values, 1.0f / extent.scale());
      }
    } else if (active) {
      add_residual(w, row * w.cols + col, values);
      store_floats(w.out + row * w.cols + col, values);
    }
    if constexpr (!kCentred) __syncthreads();  // with one sum per row its scratch is reused at once
  }
}

/// One warp per row of at most kPieces * 256 columns; lane l owns columns [8 l, 8 l + 8) of every
/// 256.
template <bool kCentred, int kPieces>
__global__ void __launch_bounds__(kRowsPerBlock* kWarp) norm_warp_kernel(NormWork w) {
  const int lane = lane_index();
  const auto column = [&](int piece) { return (piece * kWarp + lane) * kWidth; };
  const auto cols = static_cast<float>(w.cols);
  let_successor_start();
  float weight[kPieces][kWidth] = {};
  float bias[kPieces][kWidth] = {};
#pragma unroll
  for (int p = 0; p < kPieces; ++p) {
    if (column(p) >= w.cols) continue;
    load_floats(w.weight + column(p), weight[p]);
    if constexpr (kCentred) load_floats(w.bias + column(p), bias[p]);
  }
  const std::int64_t live = live_rows(w.live, w.rows);
  wait_for_predecessor();
  const std::int64_t first = std::int64_t{blockIdx.x} * kRowsPerBlock + threadIdx.x / kWarp;
  for (std::int64_t row = first; row < live; row += std::int64_t{gridDim.x} * kRowsPerBlock) {
    float values[kPieces][kWidth] = {};
    float sum = 0.0f;
#pragma unroll
    for (int p = 0; p < kPieces; ++p) {
      if (column(p) < w.cols) load_floats(w.x + row * w.cols + column(p), values[p]);
    }
#pragma unroll
    for (int i = 0; i < kPieces * kWidth; ++i) sum += values[i / kWidth][i % kWidth];
    const float mean = kCentred ? warp_sum(sum) / cols : 0.0f;
    float square = 0.0f;
#pragma unroll
    for (int p = 0; p < kPieces; ++p) {
#pragma unroll
      for (int j = 0; j < kWidth; ++j) {
        values[p][j] = column(p) < w.cols ? values[p][j] - mean : 0.0f;
        square += values[p][j] * values[p][j];
      }
    }
    const float inv_std = rsqrtf(warp_sum(square) / cols + w.epsilon);
    RowExtent extent;
#pragma unroll
    for (int p = 0; p < kPieces; ++p) {
      if (column(p) >= w.cols) continue;
#pragma unroll
      for (int j = 0; j < kWidth; ++j) {
        values[p][j] = finish<kCentred>(values[p][j], inv_std, weight[p][j], bias[p][j]);
      }
      if (w.quantized.values != nullptr) {
        extent.add(values[p]);
        continue;
      }
      add_residual(w, row * w.cols + column(p), values[p]);
      store_floats(w.out + row * w.cols + column(p), values[p]);
    }
    if (w.quantized.values == nullptr) continue;
    extent.reduce();
    if (lane == 0) extent.store(w.quantized, row);
    const float inverse = 1.0f / extent.scale();
#pragma unroll
    for (int p = 0; p < kPieces; ++p) {
      if (column(p) < w.cols)
        store_e4m3(w.quantized.values + row * w.cols + column(p), values[p], inverse);
    }
  }
}

/// The kernel above for a row of `pieces` times 256 columns.
template <bool kCentred>
auto norm_warp_kernel_for(int pieces) {
  switch (pieces) {
    case 1: return &norm_warp_kernel<kCentred, 1>;
    case 2: return &norm_warp_kernel<kCentred, 2>;
    case 3: return &norm_warp_kernel<kCentred, 3>;
    case 4: return &norm_warp_kernel<kCentred, 4>;
    case 5: return &norm_warp_kernel<kCentred, 5>;
    case 6: return &norm_warp_kernel<kCentred, 6>;
    case 7: return &norm_warp_kernel<kCentred, 7>;
    default: return &norm_warp_kernel<kCentred, 8>;
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
      float y[1] = {finish<kCentred>(__bfloat162float(x[c]) - mean, inv_std, w.weight[c], bias)};
      add_residual(w, row * w.cols + c, y);
      store_floats(w.out + row * w.cols + c, y);
    }
    if constexpr (!kCentred) __syncthreads();  // as above
  }
}

template <bool kCentred>
void launch_norm(CudaStream& stream, const NormWork& work, int num_sms) {
  const bool vectors = work.cols % kWidth == 0 && work.cols <= kMaxThreads * kWidth &&
                       is_aligned(work.x, 16) && is_aligned(work.out, 16) &&
                       is_aligned(work.weight, 16) && is_aligned(work.bias, 16) &&
                       is_aligned(work.residual, 16);
  FOVEA_CHECK(vectors || work.quantized.values == nullptr, kUnsupported,
              "quantized norms have at most ", kMaxThreads * kWidth, " columns, got ", work.cols);
  if (vectors && work.rows >= kManyRows && work.cols <= kMaxWarpCols) {
    const std::int64_t blocks = (work.rows + kRowsPerBlock - 1) / kRowsPerBlock;
    const int pieces = (work.cols + kWarp * kWidth - 1) / (kWarp * kWidth);
    const std::int64_t resident =
        std::int64_t{kPiecesPerMultiprocessor / pieces / kRowsPerBlock} * num_sms;
    return launch(stream, norm_warp_kernel_for<kCentred>(pieces),
                  dim3(static_cast<unsigned>(std::min(blocks, resident))),
                  dim3(kRowsPerBlock * kWarp), 0, work);
  }
  const int threads = vectors ? (work.cols / kWidth + kWarp - 1) / kWarp * kWarp : kAnyWidthThreads;
  const std::int64_t resident = std::int64_t{kThreadsPerMultiprocessor / threads} * num_sms;
  launch(stream, vectors ? &norm_kernel<kCentred> : &norm_any_width_kernel<kCentred>,
         dim3(static_cast<unsigned>(std::min(work.rows, resident))),
         dim3(static_cast<unsigned>(threads)), 0, work);
}

/// The parts of a quantized result, or none.
ops::QuantizedRows quantized_of(const TensorView& out) {
  return out.dtype == DType::kF8E4M3 ? ops::parts_of(out) : ops::QuantizedRows{};
}

}  // namespace

void layer_norm(CudaStream& stream, const ops::LayerNormArgs& args, int num_sms) {
  check_bf16("layer_norm", "x", args.x);
  launch_norm<true>(stream,
                    {.x = args.x.as<__nv_bfloat16>(),
                     .weight = args.weight.as<float>(),
                     .bias = args.bias.as<float>(),
                     .residual = args.residual.as<__nv_bfloat16>(),
                     .epsilon = args.epsilon,
                     .rows = args.x.shape[0],
                     .cols = static_cast<int>(args.x.shape[1]),
                     .live = args.rows.count,
                     .out = args.out.as<__nv_bfloat16>(),
                     .quantized = quantized_of(args.out)},
                    num_sms);
}

void rms_norm(CudaStream& stream, const ops::RmsNormArgs& args, int num_sms) {
  check_bf16("rms_norm", "x", args.x);
  launch_norm<false>(stream,
                     {.x = args.x.as<__nv_bfloat16>(),
                      .weight = args.weight.as<float>(),
                      .bias = nullptr,
                      .residual = args.residual.as<__nv_bfloat16>(),
                      .epsilon = args.epsilon,
                      .rows = args.x.shape[0],
                      .cols = static_cast<int>(args.x.shape[1]),
                      .live = args.rows.count,
                      .out = args.out.as<__nv_bfloat16>(),
                      .quantized = quantized_of(args.out)},
                     num_sms);
}

}  // namespace fovea::cuda
