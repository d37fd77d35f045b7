// Point-wise activations as a kernel of their own, with an optional residual.
//
// One thread per eight neighbouring columns (16-byte accesses), grid-stride over the live part; one
// column per thread where strides or addresses are not multiples of 16 bytes.
// Traffic: 4 bytes per element, 6 with a residual.
#include "ops/cuda/common/bf16.cuh"
#include "ops/cuda/common/launch.cuh"
#include "ops/cuda/gemm/unfused.h"
#include "ops/cuda/rowwise/activation.cuh"

namespace fovea::cuda {

namespace {

constexpr int kBlock = 256;
constexpr int kVector = 8;

template <int kWidth>
__global__ void __launch_bounds__(kBlock) activation_kernel(ActivationWork w) {
  wait_for_predecessor();
  const auto* const in = reinterpret_cast<const __nv_bfloat16*>(w.in);
  const auto* const residual = reinterpret_cast<const __nv_bfloat16*>(w.residual);
  auto* const out = reinterpret_cast<__nv_bfloat16*>(w.out);
  const std::int64_t pieces = w.cols / kWidth;  // of a row
  const std::int64_t total =
      (live_rows(w.live, w.first_row + w.rows) - w.first_row) * pieces;  // may be negative
  const std::int64_t first = std::int64_t{blockIdx.x} * kBlock + threadIdx.x;
  for (std::int64_t i = first; i < total; i += std::int64_t{gridDim.x} * kBlock) {
    const std::int64_t row = i / pieces;
    const std::int64_t col = (i - row * pieces) * kWidth;
    float values[kWidth];
    load_floats(in + row * w.in_stride + col, values);
    activate(w.activation, values);
    if (residual != nullptr) {
      float added[kWidth];
      load_floats(residual + row * w.residual_stride + col, added);
#pragma unroll
      for (int j = 0; j < kWidth; ++j) values[j] += added[j];
    }
    store_floats(out + row * w.out_stride + col, values);
  }
}

bool has_vectors(const ActivationWork& w) {
  return w.cols % kVector == 0 && w.in_stride % kVector == 0 && w.residual_stride % kVector == 0 &&
         w.out_stride % kVector == 0 && is_aligned(w.in, 16) && is_aligned(w.residual, 16) &&
         is_aligned(w.out, 16);
}

}  // namespace

void launch_activation(CudaStream& stream, const ActivationWork& work, int num_sms) {
  const bool vectors = has_vectors(work);
  launch(stream, vectors ? &activation_kernel<kVector> : &activation_kernel<1>,
         grid_for(work.rows * work.cols / (vectors ? kVector : 1), kBlock, num_sms), dim3(kBlock),
         0, work);
}

}  // namespace fovea::cuda
