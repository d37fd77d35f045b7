// Grid attention over whole images with Hopper's warp-group instructions; the mathematics is that
// of grid_attention/mma.cu, for heads of 64 and the widths of DeepSeek-OCR's views.
//
// A step visits whole rows of keys, so that what a key's column adds to a score is the same in
// every step: those numbers stay in registers and are where the products of queries and keys start
// from,
//   acc = (q . rel_pos_w[..]) / scale + q . k,
// and what a key's row adds is one number per query and row, which joins the offset of the
// exponential. A bias costs nothing per score.
//
// A kernel before it lays the keys and values of every step out in the order in which the matrix
// unit reads them, so that a step is one contiguous piece of memory. The values have one more
// column, of ones: its products are the sums of the weights.
//
// One block per multiprocessor works through tiles of 128 queries of one head. Its last warp group
// starts bulk copies into a ring of stages in shared memory, running ahead across tiles. The other
// two own 64 queries each: the scores of the next step are started before those of this one become
// weights, and its values are multiplied while the next scores do, so exponentials and matrix
// products overlap, within a group and between the two. At the head of a tile each warp multiplies
// its 16 queries with the relative positions that they meet; the tables lie in shared memory for as
// long as the block lives. Source of the schedule: Shah et al., FlashAttention-3, section 3.
#include "ops/cuda/common/bf16.cuh"
#include "ops/cuda/common/lanes.cuh"
#include "ops/cuda/common/launch.cuh"
#include "ops/cuda/grid_attention/steps.cuh"
#include "ops/cuda/grid_attention/tables.cuh"
#include "ops/cuda/ptx/ptx.cuh"
#include "ops/cuda/ptx/ring.cuh"

namespace fovea::cuda {

namespace {

constexpr int kDim = kGridDim;
constexpr int kDimBlocks = kGridDimBlocks;
constexpr int kConsumers = 2;
constexpr int kGroupQueries = 64;
constexpr int kQueries = kConsumers * kGroupQueries;  // of a tile
constexpr int kConsumerWarps = kConsumers * kGroup / kWarp;
constexpr int kWarpQueries = 16;
constexpr int kThreads = (kConsumers + 1) * kGroup;
constexpr int kConsumerRegisters = 232;  // per thread; 2 * 232 + 40 fit into the register file
constexpr int kCopyRegisters = 40;
constexpr float kHeadroom = 8.0f;
constexpr int kGroupBarrier = 1;  // named barriers 1 and 2; 0 is __syncthreads

template <class P>
struct Shared {
  OperandRows<kGroupQueries, kDimBlocks> queries[kConsumers];
  GridStep<P> steps[P::kStages];
  alignas(8) std::uint64_t full[P::kStages];
  alignas(8) std::uint64_t empty[P::kStages];
  // followed by the tables and the biases, see GridTables
};

/// A tile of queries of one head of one image.
struct Item {
  int image;
  int first_row;    // of the image
  int first_query;  // in the image
  int head;
};

/// The items of one block: every gridDim.x-th of all. Tiles of one head follow each other, so that
/// blocks at work share its keys and values in L2.
class Items {
 public:
  __device__ Items(const GridWork& w, int images)
      : tokens_(w.height * w.width),
        tiles_((tokens_ + kQueries - 1) / kQueries),
        heads_(w.num_heads),
        count_(images * heads_ * tiles_) {}

  [[nodiscard]] __device__ Item at(int number) const {
    const int tile = number % tiles_;
    const int head = number / tiles_ % heads_;
    const int image = number / tiles_ / heads_;
    return {image, image * tokens_, tile * kQueries, head};
  }
  template <class F>
  __device__ void for_each(const F& body) const {
    for (int number = static_cast<int>(blockIdx.x); number < count_;
         number += static_cast<int>(gridDim.x)) {
      body(at(number));
    }
  }

 private:
  int tokens_;
  int tiles_;
  int heads_;
  int count_;
};

// ---- The copying group ----

/// Brings packed steps. One thread.
template <class P>
__device__ void copy_steps(const GridWork& w, const Items& items, Shared<P>& s) {
  constexpr int kBytes = static_cast<int>(sizeof(GridStep<P>));
  Position<P::kStages> at;
  items.for_each([&](const Item& item) {
    const GridStep<P>* const from = grid_steps<P>(w, item.image, item.head);
    for (int step = 0; step < w.height / P::kRows; ++step) {
      wait_for(s.empty[at.stage], at.phase ^ 1);
      const std::uint32_t full = ptx::shared_address(&s.full[at.stage]);
      ptx::barrier_arrive_expecting(full, kBytes);
      ptx::copy_bulk(ptx::shared_address(&s.steps[at.stage]), from + step, kBytes, full);
      at.advance();
    }
  });
}

// ---- The multiplying groups ----

/// 2^x as ptx::exp2_fast gives it; the compiler keeps its place before the waits for products that
/// follow, which would otherwise move ahead of all exponentials.
__device__ float exp2_in_order(float x) {
  float y;
  asm volatile("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}

template <class P>
class Consumer {
 public:
  __device__ Consumer(const GridWork& work, Shared<P>& shared, const WarpBiases<P>& biases)
      : work_(work),
        s_(shared),
        biases_(biases),
        group_(static_cast<int>(threadIdx.x) / kGroup),
        warp_(static_cast<int>(threadIdx.x) / kWarp),
        lane_(lane_index()),
        factor_(work.scale * ptx::kLog2E) {}

  __device__ void run(const Items& items) {
    items.for_each([&](const Item& item) {
      start(item);
      attend(work_.height / P::kRows);
      store(item);
    });
  }

 private:
  /// An even number of steps.
  __device__ void attend(int num_steps) {
    typename P::Scores even;
    typename P::Scores odd;
    typename P::Weights p;
    start_scores(even);
    ptx::products_wait<0>(even);
    start_scores(odd);
    make_weights(0, even);
    ptx::products_wait<0>(odd);
    round_weights(even, p);
    for (int step = 1; step + 1 < num_steps; step += 2) {
      advance(step, p, odd, even);
      advance(step + 1, p, even, odd);
    }
    start_values(p);
    make_weights(num_steps - 1, odd);
    finish_values();
    rescale_out();
    round_weights(odd, p);
    start_values(p);
    finish_values();
  }
  /// Starts the scores of the next step, and the products of the weights of the step before with
  /// their values; while they run, the scores of this step become weights. Nothing is under way at
  /// the head and at the end: the compiler would serialise products that are across a branch.
  __device__ void advance(int step, typename P::Weights& p, typename P::Scores& scores,
                          typename P::Scores& next) {
    start_scores(next);
    start_values(p);
    make_weights(step, scores);
    ptx::products_wait<0>(next);
    finish_values();
    rescale_out();
    round_weights(scores, p);
  }
  /// Waits for the products with values and gives these back.
  __device__ void finish_values() {
    ptx::products_wait<0>(out_);
    release(s_.empty[used_.stage]);
    used_.advance();
  }
  /// What was summed so far, relative to the maximum that the newest weights are relative to.
  __device__ void rescale_out() {
    if (!moved_) return;
#pragma unroll
    for (int n = 0; n < kDimBlocks + 1; ++n) {
#pragma unroll
      for (int i = 0; i < 4; ++i) out_[n][i] *= rescale_[i / 2];
    }
  }
  __device__ static void round_weights(const typename P::Scores& weights, typename P::Weights& p) {
#pragma unroll
    for (int k = 0; k < P::kKeys / 16; ++k) pack_operand(weights[2 * k], weights[2 * k + 1], p[k]);
  }
  /// Starts out += p v.
  __device__ void start_values(const typename P::Weights& p) {
    ptx::products_begin();
#pragma unroll
    for (int k = 0; k < P::kKeys / 16; ++k) {
      ptx::product_add(out_, p[k], s_.steps[used_.stage].values.across_rows(k));
    }
    ptx::products_commit();
  }
  /// Prepares for an item: loads the warp's 16 queries, to registers for the biases and to shared
  /// memory for the products.
  __device__ void start(const Item& item) {
    std::uint32_t q[kDim / 16][4];
    const int tokens = work_.height * P::kWidth;
    first_query_ = item.first_query + warp_ * kWarpQueries;
    last_query_ = min(first_query_ + kWarpQueries, tokens) - 1;
    ptx::named_barrier_sync(kGroupBarrier + group_, kGroup);  // nobody multiplies the old ones
#pragma unroll
    for (int i = 0; i < kDim / 16 * 4; ++i) {
      const int in_warp = lane_ / 4 + 8 * (i % 2);
      const int dim = i / 2 * 8 + lane_ % 4 * 2;
      const int query = min(first_query_ + in_warp, tokens - 1);
      q[i / 4][i % 4] = *reinterpret_cast<const std::uint32_t*>(
          grid_row(work_, item.first_row + query, 0, item.head) + dim);
      auto* const to =
          s_.queries[group_].piece(warp_ % 4 * kWarpQueries + in_warp, i / 2) + lane_ % 4 * 4;
      *reinterpret_cast<std::uint32_t*>(to) = q[i / 4][i % 4];
    }
    ptx::fence_for_matrix_unit();
    ptx::named_barrier_sync(kGroupBarrier + group_, kGroup);
    // Products start from the columns and are scaled later; rows join the exponents.
    biases_.compute(q, first_query_, last_query_, work_.height, 1.0f / work_.scale, ptx::kLog2E,
                    columns_);
    maximum_[0] = maximum_[1] = -INFINITY;
#pragma unroll
    for (int n = 0; n < kDimBlocks + 1; ++n) {
#pragma unroll
      for (int i = 0; i < 4; ++i) out_[n][i] = 0.0f;
    }
  }

  /// Starts the scores of the next step in the ring.
  __device__ void start_scores(typename P::Scores& scores) {
#pragma unroll
    for (int n = 0; n < P::kKeys / 8; ++n) {
#pragma unroll
      for (int i = 0; i < 4; ++i) scores[n][i] = columns_[n % P::kColumnBlocks][i];
    }
    wait_for(s_.full[at_.stage], at_.phase);
    ptx::products_begin();
#pragma unroll
    for (int k = 0; k < kDim / 16; ++k) {
      ptx::product_add(scores, s_.queries[group_].along_rows(k),
                       s_.steps[at_.stage].keys.along_rows(k));
    }
    ptx::products_commit();
    at_.advance();
  }

  /// Turns the scores of a step into weights, relative to a maximum that is at most kHeadroom below
  /// the true one.
  __device__ void make_weights(int step, typename P::Scores& scores) {
    float bias[2][P::kRows];
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      float maximum = maximum_[r];
#pragma unroll
      for (int k = 0; k < P::kRows; ++k) {
        bias[r][k] = biases_.of(r)[step * P::kRows + k];
        float in_row = scores[k * P::kColumnBlocks][2 * r];
#pragma unroll
        for (int n = k * P::kColumnBlocks; n < (k + 1) * P::kColumnBlocks; ++n) {
          in_row = fmaxf(in_row, fmaxf(scores[n][2 * r], scores[n][2 * r + 1]));
        }
        maximum = fmaxf(maximum, fmaf(in_row, factor_, bias[r][k]));
      }
      maximum = quad_max(maximum);
      // Weights may grow to 2^kHeadroom before everything becomes relative to a new maximum.
      if (maximum <= maximum_[r] + kHeadroom) maximum = maximum_[r];
      rescale_[r] = ptx::exp2_fast(maximum_[r] - maximum);
      maximum_[r] = maximum;
    }
    moved_ = __any_sync(kAllLanes, rescale_[0] != 1.0f || rescale_[1] != 1.0f);
#pragma unroll
    for (int n = 0; n < P::kKeys / 8; ++n) {
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const float offset = bias[i / 2][n / P::kColumnBlocks] - maximum_[i / 2];
        scores[n][i] = exp2_in_order(fmaf(scores[n][i], factor_, offset));
      }
    }
  }

  /// Divides the warp's rows by their sums of weights and writes them.
  __device__ void store(const Item& item) {
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      // The sum is column 0 of its block, which the first lane of four holds.
      const float sum = __shfl_sync(kAllLanes, out_[kDimBlocks][2 * r], lane_ / 4 * 4);
      const float inverse = 1.0f / sum;
      const int query = first_query_ + lane_ / 4 + 8 * r;
      if (query > last_query_) continue;
      __nv_bfloat16* const out =
          reinterpret_cast<__nv_bfloat16*>(work_.out) +
          (std::int64_t{item.first_row + query} * work_.num_heads + item.head) * kDim +
          lane_ % 4 * 2;
#pragma unroll
      for (int n = 0; n < kDimBlocks; ++n) {
        *reinterpret_cast<std::uint32_t*>(out + n * 8) =
            pack_bf16(out_[n][2 * r] * inverse, out_[n][2 * r + 1] * inverse);
      }
    }
  }

  const GridWork& work_;
  Shared<P>& s_;
  WarpBiases<P> biases_;
  int group_;
  int warp_;
  int lane_;
  float factor_;
  int first_query_ = 0;  // of this warp, in the image
  int last_query_ = 0;   // that exists; before the first if none does
  typename P::Columns columns_ = {};
  typename P::Out out_ = {};
  float maximum_[2] = {};
  float rescale_[2] = {};
  bool moved_ = false;         // some rescale_ of the warp is not 1
  Position<P::kStages> at_;    // whose scores are started next
  Position<P::kStages> used_;  // whose values are multiplied, or given back, next
};

// ---- The kernel ----

/// What does not depend on the work before: barriers and tables.
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
  ptx::fence_for_matrix_unit();
  __syncthreads();
}

/// Zeros in the rows of images that are not live.
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
    ptx::shrink_registers<kCopyRegisters>();
    if (threadIdx.x % kGroup == 0) copy_steps<P>(w, items, shared);
  } else {
    ptx::grow_registers<kConsumerRegisters>();
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
  return w.height % (2 * P::kRows) == 0 && shared_bytes<P>(w) <= kMostSharedBytes;
}

template <class P>
void launch_plan(CudaStream& stream, const GridWork& w, int num_multiprocessors) {
  const std::size_t bytes = shared_bytes<P>(w);
  launch_grid_packing(stream, w);
  const int tiles = (w.height * w.width + kQueries - 1) / kQueries;
  const int blocks = std::min(w.images * w.num_heads * tiles, num_multiprocessors);
  launch(stream, &grid_attention_wgmma_kernel<P>, dim3(static_cast<unsigned>(blocks)),
         dim3(kThreads), bytes, w);
}

}  // namespace

bool has_grid_attention_wgmma(const GridWork& w) {
  constexpr float kSmallestScale = 0x1p-20f;  // biases are divided by it
  const bool plain = w.query_flip == 0 && w.query_keep == ~0u && w.scale >= kSmallestScale;
  if (!plain || w.head_dim != kDim || w.side_h != w.height || w.side_w != w.width) return false;
  bool served = false;
  with_grid_plan(w.width, [&]<class P>(P) { served = fits<P>(w); });
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

void launch_grid_attention_wgmma(CudaStream& stream, const GridWork& w, int num_multiprocessors) {
  const DeviceGuard guard(stream.device_index());
  with_grid_plan(w.width, [&]<class P>(P) { launch_plan<P>(stream, w, num_multiprocessors); });
}

}  // namespace fovea::cuda
