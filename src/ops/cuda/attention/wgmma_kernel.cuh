#pragma once

// Softmax attention over packed sequences with Hopper's warp-group instructions, of bf16 or E4M3.
//
// Keys and values lie in the order in which WGMMA reads them (common/packed_heads.h), so that the
// keys of a step are one contiguous piece of memory. The GEMM that computes them stores them there
// (gemm/hopper/heads.cuh), or a kernel between the two.
//
// One CTA per SM works through tiles of 128 or 192 query rows of one head. Its last warp group
// only copies (attention/wgmma_feed.cuh). The other two or three groups own 64 query rows each. A
// group starts p v of a step and q k^T of the next step together and waits for both, while the
// others compute exponentials. The groups take turns: tensor cores have the WGMMAs of one group at
// a time. Of E4M3 there are two groups, and tensor cores add up p v of kChunkSteps steps only, as
// they keep few bits.
//
// Measured on an H200, useful TFLOP/s of heads of 64, 72, 80, 96, 128 with the packing kernel: one
// sequence of 16384 rows 560, 590, 540, 630, 700; of 4096 rows 490, 460, 430, 550, 490; 8 sequences
// of 1024 rows 320 to 390. Of E4M3: 800, 800, 895, 970, 1100; 570 to 720; 360 to 405.
// What did not help: polynomials in place of some exponentials (more instructions), scores of the
// next step under way in a second set of registers during the softmax (nor where it has no branch,
// so that the compiler does not serialise them), queries in registers, 16-byte copies of keys and
// values without packing (277 at 16384 rows of 72), q k^T before p v so that the softmax begins
// while p v is under way, turns that end with the last but one WGMMA, 144 or 192 keys in a step of
// two groups. The items of a CTA as one stream of steps, where q k^T of an item starts together
// with the last p v of the item before: 8 x 256 rows 4 % faster, 20 x 440 and 8 x 1024 1 %, but
// 4096 and 16384 rows 1 % slower.
#include "core/rounding.h"
#include "ops/cuda/attention/softmax_e4m3.cuh"
#include "ops/cuda/attention/softmax_wgmma.cuh"
#include "ops/cuda/attention/wgmma_feed.cuh"
#include "ops/cuda/common/bf16.cuh"
#include "ops/cuda/common/lanes.cuh"
#include "ops/cuda/common/launch.cuh"
#include "ops/cuda/common/packed_heads.h"
#include "ops/cuda/ptx/ptx.cuh"
#include "ops/cuda/ptx/wgmma.cuh"
#include "ops/cuda/rowwise/quantize.cuh"

namespace fovea::cuda::hopper_attention {

inline constexpr int kFirstTurnBarrier = 1;  // one named barrier per group; 0 is __syncthreads

/// Starts scores = q k^T; `queries` are those of the group.
template <class P>
__device__ void start_keys(const std::byte* queries, const std::byte* keys,
                           typename P::Scores& scores) {
  constexpr int kBlockBytes = P::Slabs::kBlockBytes;
  const std::uint64_t q =
      ptx::operand_descriptor(ptx::shared_address(queries), kBlockBytes, P::kEightKeysBytes);
  const std::uint64_t k =
      ptx::operand_descriptor(ptx::shared_address(keys), kBlockBytes, P::kEightKeysBytes);
  ptx::wgmma_fence();
  if constexpr (P::kE4M3) {
    ptx::wgmma_init_e4m3(scores, q, k);
  } else {
    ptx::wgmma_init(scores, q, k);
  }
#pragma unroll
  for (int step = 1; step < P::kSteps; ++step) {
    const std::uint64_t a = ptx::advance_operand(q, step * 2 * kBlockBytes);
    const std::uint64_t b = ptx::advance_operand(k, step * 2 * kBlockBytes);
    if constexpr (P::kE4M3) {
      ptx::wgmma_e4m3(scores, a, b);
    } else {
      ptx::wgmma(scores, a, b);
    }
  }
  ptx::wgmma_commit_group();
}

/// Starts sums += p v, or, of E4M3, sums = p v for the `first` of a chunk.
template <class P>
__device__ void start_values(const typename P::Weights& p, const std::byte* values, bool first,
                             typename P::Out& sums) {
  // Blocks that follow each other along the keys are a slab apart.
  const std::uint64_t v = ptx::operand_descriptor(ptx::shared_address(values), P::kValueSlabBytes,
                                                  P::Slabs::kBlockBytes);
  ptx::wgmma_fence();
#pragma unroll
  for (int step = 0; step < P::kKeys / P::kWeightKeys; ++step) {
    const std::uint64_t b = ptx::advance_operand(v, step * 2 * P::kValueSlabBytes);
    if constexpr (P::kE4M3) {
      ptx::wgmma_e4m3(sums, p[step], b, step > 0 || !first);
    } else {
      ptx::wgmma(sums, p[step], b);
    }
  }
  ptx::wgmma_commit_group();
}

/// Where the results for a row of the batch go: to the member of the team that has it.
template <class P>
struct ResultRow {
  int member;
  int row;             ///< of this member
  std::int64_t first;  ///< element of `out` with which the row of the first of these heads begins

  __device__ ResultRow(const AttentionWork& w, int batch_row)
      : member(w.team.size == 1 ? 0 : batch_row / w.team.rows),
        row(batch_row - member * w.team.rows),
        first((std::int64_t{row} * w.team.size + w.team.rank) * w.num_heads * P::kDim) {}
};

/// Stores the numbers of row `r` of the two that a lane has, times `factor`, where it is `valid`.
template <class P>
__device__ void store_bf16(const AttentionWork& w, const typename P::Out& values, int r,
                           float factor, bool valid, const ResultRow<P>& to, int head) {
  if (!valid) return;
  const int lane = lane_index();
  auto* const out =
      reinterpret_cast<__nv_bfloat16*>(w.team.at(to.member, w.out)) + to.first + head * P::kDim;
#pragma unroll
  for (int n = 0; n < P::kDim / 8; ++n) {
    *reinterpret_cast<std::uint32_t*>(out + n * 8 + lane % 4 * 2) =
        pack_bf16(values[n][2 * r] * factor, values[n][2 * r + 1] * factor);
  }
}

/// The same as part of a quantized row. All lanes of a warp call it.
template <class P>
__device__ void store_quantized(const AttentionWork& w, const typename P::Out& values, int r,
                                float factor, bool valid, const ResultRow<P>& to, int head) {
  constexpr int kBlocks = P::kDim / 8;
  factor *= 1.0f / kQuantizedResultScale;
  const auto pair = [&](int n) -> std::uint32_t {
    return pack_e4m3(values[n][2 * r] * factor, values[n][2 * r + 1] * factor);
  };
  const int lane = lane_index();
  const bool is_odd = lane % 2 != 0;
  std::byte* const out =
      w.team.at(to.member, w.out) + to.first + head * P::kDim + lane % 4 / 2 * 4 + (is_odd ? 8 : 0);
#pragma unroll
  for (int n = 0; n < kBlocks; n += 2) {
    // Two lanes have four neighbouring numbers of each block: one stores those of the first block,
    // the other those of the second.
    const std::uint32_t left = pair(n);
    const std::uint32_t right = n + 1 < kBlocks ? pair(n + 1) : 0;
    const std::uint32_t other = __shfl_xor_sync(kAllLanes, is_odd ? left : right, 1);
    if (valid && (n + 1 < kBlocks || !is_odd)) {
      *reinterpret_cast<std::uint32_t*>(out + n * 8) =
          is_odd ? other | right << 16 : left | other << 16;
    }
  }
  if (valid && head == 0 && w.team.rank == 0 && lane % 4 == 0) {
    const auto width = static_cast<float>(w.team.size * w.num_heads * P::kDim);
    w.team.at(to.member, w.out_scale)[to.row] = kQuantizedResultScale;
    w.team.at(to.member, w.out_norm)[to.row] = kQuantizedResultScale * kMaxE4M3 * sqrtf(width);
  }
}

/// Divides the 16 rows of a warp, which begin at `first_row` of the batch, by their sums of weights
/// and writes those from `lead` to `valid_rows`.
template <class P>
__device__ void store_rows(const AttentionWork& w, const typename P::Out& values, int first_row,
                           int lead, int valid_rows, int head) {
  const int lane = lane_index();
#pragma unroll
  for (int r = 0; r < 2; ++r) {
    // The sum is column 0 of its block, which the first lane of four holds.
    const float sum = __shfl_sync(kAllLanes, values[P::kDim / 8][2 * r], lane / 4 * 4);
    const float inverse = 1.0f / sum;
    const int row = lane / 4 + 8 * r;
    const bool valid = row >= lead && row < valid_rows;
    const ResultRow<P> to(w, first_row + row);
    if constexpr (P::kE4M3) {
      if (w.out_scale != nullptr) {
        store_quantized<P>(w, values, r, inverse, valid, to, head);
        continue;
      }
    }
    store_bf16<P>(w, values, r, inverse, valid, to, head);
  }
}

/// out += sums
template <class P>
__device__ void add(const typename P::Out& sums, typename P::Out& out) {
#pragma unroll
  for (int n = 0; n <= P::kDim / 8; ++n) {
#pragma unroll
    for (int i = 0; i < 4; ++i) out[n][i] += sums[n][i];
  }
}

/// One multiplying group at work on one item after the other.
template <class P>
class Consumer {
 public:
  __device__ Consumer(const AttentionWork& work, Shared<P>& shared, int group)
      : work_(work),
        s_(shared),
        group_(group),
        factor_(work.scale * ptx::kLog2E * (P::kE4M3 ? kOctave : 1.0f)) {
    if (group_ == P::kGroups - 1) pass_turn();  // the first group starts
  }

  /// The next item: all its keys and values, then the result.
  __device__ void run() {
    wait_for(s_.queries_full[queries_.stage], queries_.phase);
    ptx::fence_proxy_async();  // queries of bf16 came by ordinary copies
    const Item& item = s_.items[queries_.stage];
    typename P::Out out;
    attend((item.num_keys + P::kKeys - 1) / P::kKeys, out);
    const int warp = static_cast<int>(threadIdx.x) % kGroup / kWarp;
    const int first = group_ * kGroupQueries + warp * 16;
    store_rows<P>(work_, out, item.first_row + first, item.lead - first, item.valid_rows - first,
                  item.head);
    __syncwarp();  // all lanes have read the item
    release(s_.queries_empty[queries_.stage]);
    queries_.advance();
  }

 private:
  __device__ void attend(int num_steps, typename P::Out& out) {
    typename P::Scores scores;
    typename P::Weights p;
    RowOffsets rows;
    typename P::Out of_chunk;  // of E4M3
    typename P::Out& sums = P::kE4M3 ? of_chunk : out;
#pragma unroll
    for (int n = 0; n <= P::kDim / 8; ++n) {
#pragma unroll
      for (int i = 0; i < 4; ++i) out[n][i] = sums[n][i] = 0.0f;
    }

    rows.offset[0] = rows.offset[1] = P::kE4M3 ? -kZeroWeight : 0.0f;

    wait_for(s_.keys_full[keys_.stage], keys_.phase);
    wait_for_turn();
    start_keys<P>(my_queries(), s_.keys[keys_.stage], scores);
    end_turn();
    finish_keys(scores);
#pragma unroll 1
    for (int step = 0;; ++step) {
      weigh(step == 0, scores, rows, p);
      if (rows.moved && step > 0) {
        rescale<P>(rows, out);
        if constexpr (P::kE4M3) rescale<P>(rows, sums);
      }
      if constexpr (!P::kE4M3) round_weights<P>(scores, p);
      wait_for(s_.values_full[values_.stage], values_.phase);
      if (step == num_steps - 1) break;
      wait_for(s_.keys_full[keys_.stage], keys_.phase);
      // A group that has the turn starts at once: the compiler would round the weights only then.
      wait_for_turn(zero_after<P>(p));
      start_values<P>(p, s_.values[values_.stage], begins_chunk(step), sums);
      start_keys<P>(my_queries(), s_.keys[keys_.stage], scores);
      // The softmax follows at the start of the loop: the compiler would move half of one that
      // stands here before the end of the turn, which others wait for.
      end_turn();
      finish_values(sums);
      finish_keys(scores);
      if (P::kE4M3 && begins_chunk(step + 1)) add<P>(sums, out);
    }
    start_values<P>(p, s_.values[values_.stage], begins_chunk(num_steps - 1), sums);
    ptx::wgmma_wait_group<0>();
    finish_values(sums);
    if constexpr (P::kE4M3) add<P>(sums, out);
  }

  /// Turns scores into weights, those of E4M3 into their bits.
  __device__ void weigh(bool first, typename P::Scores& scores, RowOffsets& rows,
                        typename P::Weights& p) const {
    if constexpr (P::kE4M3) {
      make_e4m3_weights<P>(first, factor_, scores, rows, p);
    } else {
      make_weights<P>(first, factor_, scores, rows);
    }
  }
  /// Whether p v of this step is the first of a chunk.
  [[nodiscard]] static __device__ bool begins_chunk(int step) { return step % P::kChunkSteps == 0; }
  /// Waits for what this group has started. The next group may start after that, or before, as
  /// kPassesEarly says.
  __device__ void end_turn() const {
    if constexpr (P::kPassesEarly) pass_turn();
    ptx::wgmma_wait_group<0>();
    if constexpr (!P::kPassesEarly) pass_turn();
  }
  __device__ void finish_keys(typename P::Scores& scores) {
    ptx::wgmma_have_ended(scores);
    release(s_.keys_empty[keys_.stage]);
    keys_.advance();
  }
  __device__ void finish_values(typename P::Out& sums) {
    ptx::wgmma_have_ended(sums);
    release(s_.values_empty[values_.stage]);
    values_.advance();
  }

  [[nodiscard]] __device__ const std::byte* my_queries() const {
    return s_.queries[queries_.stage] + group_ * (kGroupQueries / 8) * P::kEightKeysBytes;
  }
  __device__ void wait_for_turn(int zero = 0) const {
    ptx::named_barrier_sync(kFirstTurnBarrier + group_ + zero, 2 * kGroup);
  }
  __device__ void pass_turn() const {
    const int next = group_ + 1 == P::kGroups ? 0 : group_ + 1;
    ptx::named_barrier_arrive(kFirstTurnBarrier + next, 2 * kGroup);
  }

  const AttentionWork& work_;
  Shared<P>& s_;
  int group_;
  float factor_;
  Position<kQueryStages> queries_;
  Position<P::kStages> keys_;
  Position<P::kStages> values_;
};

// ---- The kernel ----

template <class P>
__device__ void init_barriers(Shared<P>& s) {
  constexpr int kConsumerWarps = P::kGroups * kGroup / kWarp;
  const auto init = [](std::uint64_t& barrier, int arrivals) {
    ptx::barrier_init(ptx::shared_address(&barrier), arrivals);
  };
  for (int stage = 0; stage < kQueryStages; ++stage) {
    init(s.queries_full[stage], kQueryArrivals<P>);
    init(s.queries_empty[stage], kConsumerWarps);
  }
  for (int stage = 0; stage < P::kStages; ++stage) {
    init(s.keys_full[stage], 1);
    init(s.values_full[stage], 1);
    init(s.keys_empty[stage], kConsumerWarps);
    init(s.values_empty[stage], kConsumerWarps);
  }
  ptx::fence_proxy_async();  // TMA sees the barriers
}

template <class P>
__global__ void __launch_bounds__(P::kThreads, 1)
    attention_wgmma_kernel(const __grid_constant__ AttentionWork w) {
  extern __shared__ __align__(128) std::byte memory[];
  Shared<P>& shared = *reinterpret_cast<Shared<P>*>(memory);
  auto* const first_tiles = reinterpret_cast<int*>(memory + sizeof(Shared<P>));
  if (threadIdx.x == 0) init_barriers(shared);
  let_successor_start();
  const int num_sequences = live_sequences(w);
  if (threadIdx.x < kWarp) number_tiles<P>(w.cu_seqlens, num_sequences, first_tiles);
  wait_for_predecessor();
  __syncthreads();

  const Items<P> items(w, first_tiles, num_sequences);
  // The same for a whole warp, and known to be: addresses made from it need no register per thread.
  const int group = __shfl_sync(kAllLanes, static_cast<int>(threadIdx.x) / kGroup, 0);
  if (group == P::kGroups) {
    ptx::setmaxnreg_dec<P::kCopyRegisters>();
    const int thread = static_cast<int>(threadIdx.x) % kGroup;
    if (thread < kQueryCopiers) {
      copy_queries<P>(w, items, thread, shared);
    } else {
      copy_keys_and_values<P>(w, items, shared);
    }
  } else {
    ptx::setmaxnreg_inc<P::kConsumerRegisters>();
    Consumer<P> consumer(w, shared, group);
    for (int left = items.count(); left > 0; --left) consumer.run();
  }
}

/// Most sequences whose table has room behind the stages.
template <class P>
constexpr std::size_t most_sequences() {
  return (kHopperSharedBytes - sizeof(Shared<P>)) / sizeof(int) - 1;
}

template <class P>
void launch_plan(CudaStream& stream, const AttentionWork& w, int num_sms) {
  const std::size_t shared_bytes =
      sizeof(Shared<P>) + (static_cast<std::size_t>(w.max_seqs) + 1) * sizeof(int);
  const std::int64_t most_tiles = (w.rows + P::kQueries - 1) / P::kQueries + w.max_seqs;
  launch(stream, &attention_wgmma_kernel<P>,
         dim3(static_cast<unsigned>(std::min<std::int64_t>(most_tiles * w.num_heads, num_sms))),
         dim3(P::kThreads), shared_bytes, w);
}

/// Whether three groups per CTA finish sooner than two: they do more per step, but larger tiles
/// leave more of a sequence's last tile and of the last wave of SMs idle. All sequences are taken
/// to be as long as the longest may be.
inline bool prefers_three_groups(const AttentionWork& w, int num_sms) {
  constexpr double kRelativeTime = 1.4;  // of a tile of 192 rows to one of 128, measured on H200
  const int length = std::clamp(w.max_seqlen, 1, std::max(w.rows, 1));
  const auto waves = [&](int tile_rows) {
    const std::int64_t tiles = ceil_div(w.rows, length) * ceil_div(length, tile_rows);
    return static_cast<double>(ceil_div(tiles * w.num_heads, num_sms));
  };
  return kRelativeTime * waves(3 * kGroupQueries) < waves(2 * kGroupQueries);
}

template <HeadFormat kFormat, int kDim>
void launch_dim(CudaStream& stream, const AttentionWork& w, int num_sms) {
  if constexpr (kFormat == HeadFormat::kBf16) {  // registers of three groups hold no second sums
    if (prefers_three_groups(w, num_sms))
      return launch_plan<Plan<kFormat, kDim, 3>>(stream, w, num_sms);
  }
  launch_plan<Plan<kFormat, kDim, 2>>(stream, w, num_sms);
}

template <HeadFormat kFormat>
void launch_format(CudaStream& stream, const AttentionWork& w, int num_sms) {
  const DeviceGuard guard(stream.device_index());
  HopperHeadDims::choose(w.head_dim,
                         [&](auto dim) { launch_dim<kFormat, dim>(stream, w, num_sms); });
}

}  // namespace fovea::cuda::hopper_attention
