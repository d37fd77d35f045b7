// The gated activation and limits of columns: bf16 rows in, f32 inside, one rounding.
//
// One thread per eight neighbouring columns (16-byte accesses), grid-stride over the live part; one
// column per thread where halves or addresses are not multiples of 16 bytes. Quantized rows have a
// CTA each, which computes them twice: for their scale, and to divide by it; the second time their
// operands are in L1.
// Traffic: 6 bytes per element of the result, 5 of a quantized one, and 4 for limits, whose bounds
// stay in L1.
#include "ops/cuda/common/bf16.cuh"
#include "ops/cuda/common/launch.cuh"
#include "ops/cuda/common/operands.h"
#include "ops/cuda/rowwise/activation.cuh"
#include "ops/cuda/rowwise/quantize.cuh"
#include "ops/cuda/rowwise/rowwise.h"

namespace fovea::cuda {

namespace {

constexpr int kBlock = 256;
constexpr int kVector = 8;

struct GatedWork {
  ops::Activation activation;
  float limit;
  const __nv_bfloat16* x;
  __nv_bfloat16* out;
  std::int64_t rows;
  std::int64_t cols;
  const std::int32_t* live;
};

/// The smaller of the two; NaN stays what it is.
__device__ float at_most(float x, float limit) { return x > limit ? limit : x; }

/// Columns [col, col + kWidth) of a row of the result.
template <int kWidth>
__device__ void gate_columns(const GatedWork& w, std::int64_t row, std::int64_t col,
                             float (&gate)[kWidth]) {
  const __nv_bfloat16* const from = w.x + row * 2 * w.cols + col;
  float up[kWidth];
  load_floats(from, gate);
  load_floats(from + w.cols, up);
#pragma unroll
  for (int j = 0; j < kWidth; ++j) gate[j] = at_most(gate[j], w.limit);
  activate(w.activation, gate);
#pragma unroll
  for (int j = 0; j < kWidth; ++j) gate[j] *= -at_most(-at_most(up[j], w.limit), w.limit);
}

template <int kWidth>
__global__ void __launch_bounds__(kBlock) gated_kernel(GatedWork w) {
  wait_for_predecessor();
  const std::int64_t pieces = w.cols / kWidth;  // of a row of the result
  const std::int64_t total = live_rows(w.live, w.rows) * pieces;
  const std::int64_t first = std::int64_t{blockIdx.x} * kBlock + threadIdx.x;
  for (std::int64_t i = first; i < total; i += std::int64_t{gridDim.x} * kBlock) {
    const std::int64_t row = i / pieces;
    const std::int64_t col = (i - row * pieces) * kWidth;
    float gate[kWidth];
    gate_columns(w, row, col, gate);
    store_floats(w.out + row * w.cols + col, gate);
  }
}

__global__ void __launch_bounds__(kBlock)
    gated_to_e4m3_kernel(GatedWork w, ops::QuantizedRows out) {
  __shared__ RowExtent extents[kBlock / kWarp];
  wait_for_predecessor();
  const std::int64_t live = live_rows(w.live, w.rows);
  for (std::int64_t row = blockIdx.x; row < live; row += gridDim.x) {
    const auto for_columns = [&](const auto& use) {
      for (std::int64_t col = threadIdx.x * kVector; col < w.cols; col += kBlock * kVector) {
        float values[kVector];
        gate_columns(w, row, col, values);
        use(col, values);
      }
    };
    RowExtent extent;
    for_columns([&](std::int64_t, const float(&values)[kVector]) { extent.add(values); });
    extent = extent_of_cta(extent, extents);
    if (threadIdx.x == 0) extent.store(out, row);
    const float inverse = 1.0f / extent.scale();
    for_columns([&](std::int64_t col, const float(&values)[kVector]) {
      store_e4m3(out.values + row * w.cols + col, values, inverse);
    });
  }
}

struct ClampWork {
  const __nv_bfloat16* x;
  const float* least;
  const float* most;
  __nv_bfloat16* out;
  std::int64_t rows;
  std::int64_t cols;
  const std::int32_t* live;
};

template <int kWidth>
__global__ void __launch_bounds__(kBlock) clamp_kernel(ClampWork w) {
  wait_for_predecessor();
  const std::int64_t pieces = w.cols / kWidth;  // of a row
  const std::int64_t total = live_rows(w.live, w.rows) * pieces;
  const std::int64_t first = std::int64_t{blockIdx.x} * kBlock + threadIdx.x;
  for (std::int64_t i = first; i < total; i += std::int64_t{gridDim.x} * kBlock) {
    const std::int64_t col = i % pieces * kWidth;
    float values[kWidth];
    float least[kWidth];
    float most[kWidth];
    load_floats(w.x + i * kWidth, values);
    load_floats(w.least + col, least);
    load_floats(w.most + col, most);
#pragma unroll
    for (int j = 0; j < kWidth; ++j) {
      values[j] = at_most(values[j] < least[j] ? least[j] : values[j], most[j]);
    }
    store_floats(w.out + i * kWidth, values);
  }
}

}  // namespace

void gated(CudaStream& stream, const ops::GatedArgs& args, int num_sms) {
  check_bf16("gated", "x", args.x);
  const GatedWork work{.activation = args.activation,
                       .limit = args.limit,
                       .x = args.x.as<__nv_bfloat16>(),
                       .out = args.out.as<__nv_bfloat16>(),
                       .rows = args.out.shape[0],
                       .cols = args.out.shape[1],
                       .live = args.rows.count};
  if (args.out.dtype == DType::kF8E4M3) {
    check_vectors("gated", "x", args.x);
    return launch(stream, &gated_to_e4m3_kernel, grid_for(work.rows, 1, num_sms), dim3(kBlock), 0,
                  work, ops::parts_of(args.out));
  }
  const bool vectors =
      work.cols % kVector == 0 && is_aligned(args.x.data, 16) && is_aligned(args.out.data, 16);
  launch(stream, vectors ? &gated_kernel<kVector> : &gated_kernel<1>,
         grid_for(work.rows * work.cols / (vectors ? kVector : 1), kBlock, num_sms), dim3(kBlock),
         0, work);
}

void clamp(CudaStream& stream, const ops::ClampArgs& args, int num_sms) {
  check_bf16("clamp", "x", args.x);
  const ClampWork work{.x = args.x.as<__nv_bfloat16>(),
                       .least = args.least.as<float>(),
                       .most = args.most.as<float>(),
                       .out = args.out.as<__nv_bfloat16>(),
                       .rows = args.x.shape[0],
                       .cols = args.x.shape[1],
                       .live = args.rows.count};
  const bool vectors = work.cols % kVector == 0 && is_aligned(args.x.data, 16) &&
                       is_aligned(args.out.data, 16) && is_aligned(args.least.data, 16) &&
                       is_aligned(args.most.data, 16);
  launch(stream, vectors ? &clamp_kernel<kVector> : &clamp_kernel<1>,
         grid_for(work.rows * work.cols / (vectors ? kVector : 1), kBlock, num_sms), dim3(kBlock),
         0, work);
}

}  // namespace fovea::cuda
