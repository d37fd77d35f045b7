// Point-wise activations that no GEMM epilogue offers, with an optional residual.
//
// One thread per eight neighbouring columns (16-byte accesses), grid-stride over the live part; one
// column per thread where strides or addresses are not multiples of 16 bytes. erf, exp and tanh are
// the full-precision functions: the difference to the fast ones shows in a strict comparison.
// Traffic: 4 bytes per element, 6 with a residual.
#include <type_traits>

#include "ops/cuda/activation.h"
#include "ops/cuda/bf16.cuh"
#include "ops/cuda/launch.cuh"

namespace fovea::cuda {

namespace {

using ops::Activation;

constexpr int kBlock = 256;
constexpr int kVector = 8;

template <Activation kActivation>
__device__ float activate(float x) {
  if constexpr (kActivation == Activation::kGeluTanh) {
    constexpr float kSqrtTwoOverPi = 0.7978845608028654f;
    return 0.5f * x * (1.0f + tanhf(kSqrtTwoOverPi * (x + 0.044715f * x * x * x)));
  } else if constexpr (kActivation == Activation::kGeluErf) {
    constexpr float kInvSqrtTwo = 0.7071067811865476f;
    return 0.5f * x * (1.0f + erff(x * kInvSqrtTwo));
  } else if constexpr (kActivation == Activation::kQuickGelu) {
    return x / (1.0f + expf(-1.702f * x));
  } else if constexpr (kActivation == Activation::kSilu) {
    return x / (1.0f + expf(-x));
  } else {
    return x;
  }
}

template <Activation kActivation, int kWidth>
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
#pragma unroll
    for (int j = 0; j < kWidth; ++j) values[j] = activate<kActivation>(values[j]);
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

template <Activation kActivation>
void launch_as(CudaStream& stream, const ActivationWork& work, int num_multiprocessors) {
  const bool vectors = has_vectors(work);
  launch(stream,
         vectors ? &activation_kernel<kActivation, kVector> : &activation_kernel<kActivation, 1>,
         grid_for(work.rows * work.cols / (vectors ? kVector : 1), kBlock, num_multiprocessors),
         dim3(kBlock), 0, work);
}

}  // namespace

void launch_activation(CudaStream& stream, const ActivationWork& work, int num_multiprocessors) {
  switch (work.activation) {
    case Activation::kNone: return launch_as<Activation::kNone>(stream, work, num_multiprocessors);
    case Activation::kGeluTanh:
      return launch_as<Activation::kGeluTanh>(stream, work, num_multiprocessors);
    case Activation::kGeluErf:
      return launch_as<Activation::kGeluErf>(stream, work, num_multiprocessors);
    case Activation::kQuickGelu:
      return launch_as<Activation::kQuickGelu>(stream, work, num_multiprocessors);
    case Activation::kSilu: return launch_as<Activation::kSilu>(stream, work, num_multiprocessors);
  }
}

}  // namespace fovea::cuda
