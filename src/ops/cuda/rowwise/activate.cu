// Activations on their own: bf16 in place, f32 inside, one rounding.
//
// One thread per eight neighbouring elements (16-byte accesses), grid-stride over the live part;
// one element per thread where rows or the address are not multiples of 16 bytes.
// Traffic: 4 bytes per element.
#include "ops/cuda/common/bf16.cuh"
#include "ops/cuda/common/launch.cuh"
#include "ops/cuda/common/operands.h"
#include "ops/cuda/rowwise/activation.cuh"
#include "ops/cuda/rowwise/rowwise.h"

namespace fovea::cuda {

namespace {

constexpr int kBlock = 256;
constexpr int kVector = 8;

template <int kWidth>
__global__ void __launch_bounds__(kBlock)
    activate_kernel(ops::Activation activation, std::int64_t rows, std::int64_t cols,
                    const std::int32_t* live_count, __nv_bfloat16* x) {
  wait_for_predecessor();
  const std::int64_t total = live_rows(live_count, rows) * cols;
  const std::int64_t first = (std::int64_t{blockIdx.x} * kBlock + threadIdx.x) * kWidth;
  for (std::int64_t i = first; i < total; i += std::int64_t{gridDim.x} * kBlock * kWidth) {
    float values[kWidth];
    load_floats(x + i, values);
    activate(activation, values);
    store_floats(x + i, values);
  }
}

}  // namespace

void activate(CudaStream& stream, const ops::ActivateArgs& args, int num_sms) {
  check_bf16("activate", "x", args.x);
  const std::int64_t rows = args.x.shape[0];
  const std::int64_t cols = args.x.shape[1];
  const bool vectors = cols % kVector == 0 && is_aligned(args.x.data, 16);
  launch(stream, vectors ? &activate_kernel<kVector> : &activate_kernel<1>,
         grid_for(rows * cols / (vectors ? kVector : 1), kBlock, num_sms), dim3(kBlock), 0,
         args.activation, rows, cols, args.rows.count, args.x.as<__nv_bfloat16>());
}

}  // namespace fovea::cuda
