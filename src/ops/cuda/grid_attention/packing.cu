// Rearranges keys and values for the Hopper kernel (grid_attention/steps.cuh has the layout).
// Traffic: 8 bytes per row and channel.
#include "ops/cuda/common/bf16.cuh"
#include "ops/cuda/common/launch.cuh"
#include "ops/cuda/grid_attention/steps.cuh"

namespace fovea::cuda {

namespace {

constexpr int kThreads = 256;

/// One CTA packs one step of one head of one image. A thread moves 16 bytes of a key and of its
/// value: neighbouring threads take neighbouring keys, so that stores are contiguous; loads
/// share sectors through L1.
template <class P>
__global__ void __launch_bounds__(kThreads) grid_packing_kernel(GridWork w) {
  wait_for_predecessor();
  const int step = static_cast<int>(blockIdx.x);
  const int head = static_cast<int>(blockIdx.y);
  const int image = static_cast<int>(blockIdx.z);
  if (image >= live_rows(w.live, w.images)) return;
  const int first = (image * w.height + step * P::kRows) * w.width;
  GridStep<P>& to = grid_steps<P>(w, image, head)[step];
  for (int i = static_cast<int>(threadIdx.x); i < (kGridDimBlocks + 1) * P::kKeys; i += kThreads) {
    const int key = i % P::kKeys;
    const int block = i / P::kKeys;
    uint4 value{kBf16One, 0, 0, 0};
    if (block < kGridDimBlocks) {
      value = *reinterpret_cast<const uint4*>(grid_row(w, first + key, 2, head) + block * 8);
      *reinterpret_cast<uint4*>(to.keys.piece(key, block)) =
          *reinterpret_cast<const uint4*>(grid_row(w, first + key, 1, head) + block * 8);
    }
    *reinterpret_cast<uint4*>(to.values.piece(key, block)) = value;
  }
}

}  // namespace

void launch_grid_packing(CudaStream& stream, const GridWork& w) {
  with_grid_plan(w.width, [&]<class P>(P) {
    launch(stream, &grid_packing_kernel<P>,
           dim3(static_cast<unsigned>(w.height / P::kRows), static_cast<unsigned>(w.num_heads),
                static_cast<unsigned>(w.images)),
           dim3(kThreads), 0, w);
  });
}

}  // namespace fovea::cuda
