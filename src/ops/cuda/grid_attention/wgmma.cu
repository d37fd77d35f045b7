// Grid attention over whole images with WGMMA. The mathematics is that of grid_attention/mma.cu,
// for heads of 64 and the widths of DeepSeek-OCR's views.
//
// A step visits whole rows of keys, so the bias of a key's column is the same in every step. These
// numbers stay in registers and are the initial values of the scores,
//   acc = (q . rel_pos_w[..]) / scale + q . k.
// The bias of a key's row is one number per query and row, which is added to the offset of the
// exponential. So a bias costs nothing per score.
//
// A kernel before this one packs the keys and values of every step in the order in which WGMMA
// reads them, so that a step is one contiguous piece of memory. The values have one more column, of
// ones, so that p v also yields the sums of the weights.
//
// One CTA per SM works through tiles of 128 queries of one head. Its last warp group starts bulk
// copies into a ring of stages in shared memory, running ahead across tiles. The other two own 64
// queries each. They start the scores of the next step before they turn those of this step into
// weights, and multiply the values of this step meanwhile, so exponentials and WGMMAs overlap,
// within a group and between the two. At the head of a tile each warp multiplies its 16
// queries with the relative positions that they meet; the tables stay in shared memory for the
// lifetime of the CTA.
// Source: docs/reference/deepseek_ocr.md, "Relative positions"; the schedule is that of Shah et
// al., "FlashAttention-3", arXiv:2407.08608, section 3.
#include "ops/cuda/common/lanes.cuh"
#include "ops/cuda/common/launch.cuh"
#include "ops/cuda/grid_attention/steps.cuh"
#include "ops/cuda/grid_attention/tables.cuh"
#include "ops/cuda/grid_attention/wgmma_consumer.cuh"
#include "ops/cuda/grid_attention/wgmma_feed.cuh"
#include "ops/cuda/ptx/ptx.cuh"

namespace fovea::cuda {

namespace grid_wgmma {

namespace {

/// Initialises what does not depend on the preceding kernel: barriers and tables.
template <class P>
__device__ void prepare(const GridWork& w, const GridTables& sizes, Shared<P>& s,
                        __nv_bfloat16* tables) {
  if (threadIdx.x == 0) {
    for (int stage = 0; stage < P::kStages; ++stage) {
      ptx::barrier_init(ptx::shared_address(&s.full[stage]), 1);
      ptx::barrier_init(ptx::shared_address(&s.empty[stage]), kConsumerWarps);
    }
  }
  sizes.load(w, tables);
  ptx::fence_proxy_async();
  __syncthreads();
}

/// Writes zeros to the rows of images that are not live.
__device__ void clear_rows(const GridWork& w, int live) {
  const std::int64_t image = std::int64_t{w.height} * w.width * w.num_heads * kDimBlocks;
  auto* const out = reinterpret_cast<uint4*>(w.out);
  const std::int64_t step = std::int64_t{gridDim.x} * kThreads;
  for (std::int64_t i = live * image + blockIdx.x * kThreads + threadIdx.x; i < w.images * image;
       i += step) {
    out[i] = uint4{};
  }
}

template <class P>
__global__ void __launch_bounds__(kThreads, 1)
    grid_attention_wgmma_kernel(const __grid_constant__ GridWork w) {
  extern __shared__ __align__(128) std::byte memory[];
  Shared<P>& shared = *reinterpret_cast<Shared<P>*>(memory);
  const GridTables sizes(w.height, P::kWidth);
  auto* const tables = reinterpret_cast<__nv_bfloat16*>(memory + sizeof(Shared<P>));
  auto* const biases = reinterpret_cast<float*>(memory + sizeof(Shared<P>) + sizes.table_bytes());
  prepare<P>(w, sizes, shared, tables);
  wait_for_predecessor();

  const int live = static_cast<int>(live_rows(w.live, w.images));
  clear_rows(w, live);
  const Items items(w, live);
  if (static_cast<int>(threadIdx.x) / kGroup == kConsumers) {
    ptx::setmaxnreg_dec<kCopyRegisters>();
    if (threadIdx.x % kGroup == 0) copy_steps<P>(w, items, shared);
  } else {
    ptx::setmaxnreg_inc<kConsumerRegisters>();
    const int warp = static_cast<int>(threadIdx.x) / kWarp;
    const WarpBiases<P> own(sizes, tables, biases + warp * kWarpQueries * sizes.bias_stride);
    Consumer<P> consumer(w, shared, own);
    consumer.run(items);
  }
}

template <class P>
std::size_t shared_bytes(const GridWork& w) {
  const GridTables sizes(w.height, P::kWidth);
  return sizeof(Shared<P>) +
         static_cast<std::size_t>(sizes.table_bytes() + sizes.bias_bytes(kQueries));
}

/// Whether the kernel serves images of this height.
template <class P>
bool fits(const GridWork& w) {
  return w.height % (2 * P::kRows) == 0 && shared_bytes<P>(w) <= kHopperSharedBytes;
}

template <class P>
void launch_plan(CudaStream& stream, const GridWork& w, int num_sms) {
  const std::size_t bytes = shared_bytes<P>(w);
  launch_grid_packing(stream, w);
  const int tiles = (w.height * w.width + kQueries - 1) / kQueries;
  const int blocks = std::min(w.images * w.num_heads * tiles, num_sms);
  launch(stream, &grid_attention_wgmma_kernel<P>, dim3(static_cast<unsigned>(blocks)),
         dim3(kThreads), bytes, w);
}

}  // namespace

}  // namespace grid_wgmma

bool has_grid_attention_wgmma(const GridWork& w) {
  constexpr float kSmallestScale = 0x1p-20f;  // biases are divided by it
  const bool plain = w.query_flip == 0 && w.query_keep == ~0u && w.scale >= kSmallestScale;
  if (!plain || w.head_dim != kGridDim || w.side_h != w.height || w.side_w != w.width) return false;
  bool served = false;
  with_grid_plan(w.width, [&]<class P>(P) { served = grid_wgmma::fits<P>(w); });
  return served;
}

std::size_t grid_attention_wgmma_workspace(const GridWork& w) {
  std::size_t bytes = 0;
  with_grid_plan(w.width, [&]<class P>(P) {
    bytes = static_cast<std::size_t>(w.images) * static_cast<std::size_t>(w.num_heads) *
            static_cast<std::size_t>(w.height / P::kRows) * sizeof(GridStep<P>);
  });
  return bytes;
}

void launch_grid_attention_wgmma(CudaStream& stream, const GridWork& w, int num_sms) {
  const DeviceGuard guard(stream.device_index());
  with_grid_plan(w.width, [&]<class P>(P) { grid_wgmma::launch_plan<P>(stream, w, num_sms); });
}

}  // namespace fovea::cuda
