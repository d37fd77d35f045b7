// Rows of bf16 as rows of E4M3, each with a scale of its own.
//
// One warp per row, grid-stride up to the live count. A lane takes eight columns of every 256: once
// to find the largest magnitude, once more, from the caches, to divide by it.
// Traffic: 3 * rows * cols bytes. Sums run in a fixed order.
#include "ops/cuda/rowwise/rowwise.h"

#include "ops/cuda/common/bf16.cuh"
#include "ops/cuda/common/launch.cuh"
#include "ops/cuda/rowwise/quantize.cuh"

namespace fovea::cuda {

namespace {

constexpr int kWarps = 8;  // of a CTA
constexpr int kWidth = 8;  // bf16 of a 16-byte load

struct QuantizeWork {
  const __nv_bfloat16* x;
  std::int64_t rows;
  int cols;
  const std::int32_t* live;
  ops::QuantizedRows out;
};

__global__ void __launch_bounds__(kWarps* kWarp) quantize_kernel(QuantizeWork w) {
  wait_for_predecessor();
  const int lane = lane_index();
  const std::int64_t live = live_rows(w.live, w.rows);
  const std::int64_t first = std::int64_t{blockIdx.x} * kWarps + threadIdx.x / kWarp;
  for (std::int64_t row = first; row < live; row += std::int64_t{gridDim.x} * kWarps) {
    const __nv_bfloat16* const x = w.x + row * w.cols;
    RowExtent extent;
    for (int col = lane * kWidth; col < w.cols; col += kWarp * kWidth) {
      float values[kWidth];
      load_floats(x + col, values);
      extent.add(values);
    }
    extent.reduce();
    if (lane == 0) extent.store(w.out, row);
    const float inverse = 1.0f / extent.scale();
    for (int col = lane * kWidth; col < w.cols; col += kWarp * kWidth) {
      float values[kWidth];
      load_floats(x + col, values);
      store_e4m3(w.out.values + row * w.cols + col, values, inverse);
    }
  }
}

}  // namespace

void quantize_rows(CudaStream& stream, ConstTensorView x, LiveRows rows,
                   const ops::QuantizedRows& out, int num_sms) {
  const QuantizeWork work{.x = x.as<__nv_bfloat16>(),
                          .rows = x.shape[0],
                          .cols = static_cast<int>(x.shape[1]),
                          .live = rows.count,
                          .out = out};
  launch(stream, &quantize_kernel, grid_for(work.rows, kWarps, num_sms), dim3(kWarps * kWarp), 0,
         work);
}

}  // namespace fovea::cuda
