// Softmax attention over packed sequences with Hopper's warp-group instructions; the mathematics
// and the rounding are those of attention_mma.cu.
//
// A kernel before it lays keys and values out in the order in which the matrix unit reads them
// (attention_packing.h), so that the keys of a step are one contiguous piece of memory.
//
// One block per multiprocessor works through tiles of 128 query rows of one head. One warp only
// starts bulk copies of keys and values into a ring of stages in shared memory, running ahead
// across tiles. Two warp groups own 64 query rows each: the scores of a step are started before the
// values of the step before are multiplied, so exponentials and matrix products of a group overlap,
// and the groups take turns in starting products, so that one multiplies while the other computes
// exponentials. Query rows stay in registers.
// Source of the schedule: Shah et al., FlashAttention-3, section 3.
#include "ops/cuda/attention_packing.h"
#include "ops/cuda/attention_tiles.cuh"
#include "ops/cuda/bf16.cuh"
#include "ops/cuda/launch.cuh"
#include "ops/cuda/ptx.cuh"
#include "ops/cuda/wgmma.cuh"

namespace fovea::cuda {

namespace {

constexpr int kGroup = 128;    // threads of a warp group
constexpr int kConsumers = 2;  // warp groups that multiply
constexpr int kThreads = (kConsumers + 1) * kGroup;
constexpr int kGroupQueries = 64;
constexpr int kQueries = kConsumers * kGroupQueries;
/// Keys of a step: as many as registers hold scores and weights for.
template <int kDim>
inline constexpr int kKeys = kDim <= 80 ? 176 : 128;
template <int kDim>
inline constexpr int kSlabs = kKeys<kDim> / kSlabRows;
constexpr int kStages = 3;
constexpr int kConsumerRegisters = 240;  // per thread; 2 * 240 + 24 fill the register file
constexpr int kCopyRegisters = 24;
constexpr int kFirstTurnBarrier = 1;  // named barriers 1 and 2; 0 is __syncthreads

/// The hand-over between the copying warp and the multiplying groups, per stage.
struct Barriers {
  std::uint64_t keys_full[kStages];
  std::uint64_t keys_empty[kStages];
  std::uint64_t values_full[kStages];
  std::uint64_t values_empty[kStages];
};

template <int kDim>
struct Shared {
  alignas(128) std::byte keys[kStages][kSlabs<kDim> * key_slab_bytes(kDim)];
  alignas(128) std::byte values[kStages][kSlabs<kDim> * value_slab_bytes(kDim)];
  Barriers barriers;
  // followed by SequenceStart[max_seqs + 1]
};

/// What comes before a sequence.
struct SequenceStart {
  int tiles;
  int slabs;
};

/// Where a group stands in the ring of stages.
struct Position {
  int stage = 0;
  std::uint32_t phase = 0;
  __device__ void advance() {
    if (++stage == kStages) {
      stage = 0;
      phase ^= 1;
    }
  }
};

template <int kDim>
struct Accumulator {
  float out[kDim / 8][4] = {};
  float maximum[2] = {-INFINITY, -INFINITY};
  float sum[2] = {};
};

template <int kDim>
using Queries = std::uint32_t[(kDim + 15) / 16][4];
template <int kDim>
using Scores = float[kKeys<kDim> / 8][4];
template <int kDim>
using Weights = std::uint32_t[kKeys<kDim> / 16][4];  // bf16, as the second product takes them

/// Sum of `value` over the lanes up to this one.
__device__ int sum_up_to_lane(int value) {
#pragma unroll
  for (int offset = 1; offset < 32; offset *= 2) {
    const int lower = __shfl_up_sync(0xffffffffu, value, offset);
    if (static_cast<int>(threadIdx.x) % 32 >= offset) value += lower;
  }
  return value;
}

/// starts[s] for s <= num_sequences. Run by one warp.
__device__ void number_sequences(const std::int32_t* cu_seqlens, int num_sequences,
                                 SequenceStart* starts) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  SequenceStart before{0, 0};
  for (int base = 0; base < num_sequences; base += 32) {
    const int sequence = base + lane;
    const int rows = sequence < num_sequences ? cu_seqlens[sequence + 1] - cu_seqlens[sequence] : 0;
    const int tiles = before.tiles + sum_up_to_lane((rows + kQueries - 1) / kQueries);
    const int slabs = before.slabs + sum_up_to_lane((rows + kSlabRows - 1) / kSlabRows);
    if (sequence < num_sequences) starts[sequence + 1] = {tiles, slabs};
    before = {__shfl_sync(0xffffffffu, tiles, 31), __shfl_sync(0xffffffffu, slabs, 31)};
  }
  if (lane == 0) starts[0] = {0, 0};
}

/// A tile of queries of one head.
struct Item {
  QueryTile tile;
  int first_slab;  ///< of its sequence
  int head;
};

/// What every warp of a block knows.
template <int kDim>
struct Block {
  const AttentionWork& work;
  Shared<kDim>& shared;
  const SequenceStart* starts;
  int num_sequences;
  int num_tiles;  // of one head

  [[nodiscard]] __device__ std::int64_t width() const {
    return std::int64_t{work.num_heads} * kDim;
  }
  [[nodiscard]] __device__ int num_items() const { return num_tiles * work.num_heads; }
  /// Tiles of one head follow each other, so that blocks at work share its keys and values in L2.
  [[nodiscard]] __device__ Item item(int number) const {
    const int head = number / num_tiles;
    const int tile = number - head * num_tiles;
    int low = 0;
    int high = num_sequences;
    while (high - low > 1) {
      const int middle = (low + high) / 2;
      (starts[middle].tiles <= tile ? low : high) = middle;
    }
    const int begin = work.cu_seqlens[low];
    return {{begin, work.cu_seqlens[low + 1] - begin, (tile - starts[low].tiles) * kQueries},
            starts[low].slabs,
            head};
  }
};

/// Fills one stage of keys or values with the next `slabs` slabs at `from`, for a whole warp. What
/// is missing at the end of a sequence becomes zeros where `clear` asks for it: the weights of
/// those rows are zero, but zero times a stale NaN is not.
template <int kSlabCount>
__device__ void fill_stage(const std::byte* from, int slabs, int slab_bytes, bool clear,
                           std::byte* stage, std::uint64_t& full) {
  const int bytes = min(slabs, kSlabCount) * slab_bytes;
  if (clear && slabs < kSlabCount) {
    const int lane = static_cast<int>(threadIdx.x) % 32;
    for (int i = bytes + lane * 16; i < kSlabCount * slab_bytes; i += 32 * 16) {
      *reinterpret_cast<uint4*>(stage + i) = uint4{};
    }
    ptx::fence_for_matrix_unit();
    __syncwarp();
  }
  if (threadIdx.x % 32 == 0) {
    const std::uint32_t barrier = ptx::shared_address(&full);
    ptx::barrier_arrive_expecting(barrier, bytes);
    ptx::copy_bulk(ptx::shared_address(stage), from, bytes, barrier);
  }
}

/// The copying warp.
template <int kDim>
__device__ void produce(const Block<kDim>& block) {
  constexpr int kKeyBytes = key_slab_bytes(kDim);
  constexpr int kValueBytes = value_slab_bytes(kDim);
  Shared<kDim>& s = block.shared;
  const AttentionWork& w = block.work;
  const std::int64_t slabs = max_slabs(w.rows, w.max_seqs);
  const std::byte* const all_values = w.workspace + slabs * w.num_heads * kKeyBytes;
  Position at;
  for (int number = static_cast<int>(blockIdx.x); number < block.num_items();
       number += static_cast<int>(gridDim.x)) {
    const Item item = block.item(number);
    const std::int64_t first_slab = item.head * slabs + item.first_slab;
    const std::byte* keys = w.workspace + first_slab * kKeyBytes;
    const std::byte* values = all_values + first_slab * kValueBytes;
    int left = (item.tile.sequence_rows + kSlabRows - 1) / kSlabRows;
    for (; left > 0; left -= kSlabs<kDim>) {
      ptx::barrier_wait(ptx::shared_address(&s.barriers.keys_empty[at.stage]), at.phase ^ 1);
      fill_stage<kSlabs<kDim>>(keys, left, kKeyBytes, false, s.keys[at.stage],
                               s.barriers.keys_full[at.stage]);
      ptx::barrier_wait(ptx::shared_address(&s.barriers.values_empty[at.stage]), at.phase ^ 1);
      fill_stage<kSlabs<kDim>>(values, left, kValueBytes, true, s.values[at.stage],
                               s.barriers.values_full[at.stage]);
      keys += kSlabs<kDim> * kKeyBytes;
      values += kSlabs<kDim> * kValueBytes;
      at.advance();
    }
  }
}

/// Waits until a stage is full.
__device__ void wait_full(std::uint64_t& barrier, std::uint32_t phase) {
  ptx::barrier_wait(ptx::shared_address(&barrier), phase);
}

/// Tells the copying warp that this warp has read a stage.
__device__ void release(std::uint64_t& barrier) {
  if (threadIdx.x % 32 == 0) ptx::barrier_arrive(ptx::shared_address(&barrier));
}

/// Starts scores = q k^T.
template <int kDim>
__device__ void start_keys(const Queries<kDim>& q, const std::byte* keys, Scores<kDim>& scores) {
  const std::uint64_t operand =
      ptx::operand_descriptor(ptx::shared_address(keys), kBlockBytes, key_slab_bytes(kDim));
  ptx::products_begin();
#pragma unroll
  for (int step = 0; step < (kDim + 15) / 16; ++step) {
    ptx::GroupProduct<kKeys<kDim>, ptx::Operand::kColumns>::start(
        scores, q[step], ptx::advance_operand(operand, step * 2 * kBlockBytes), step > 0);
  }
  ptx::products_commit();
}

/// Starts out += p v.
template <int kDim>
__device__ void start_values(const Weights<kDim>& p, const std::byte* values,
                             float (&out)[kDim / 8][4]) {
  const std::uint64_t operand =
      ptx::operand_descriptor(ptx::shared_address(values), value_slab_bytes(kDim), kBlockBytes);
  ptx::products_begin();
#pragma unroll
  for (int step = 0; step < kKeys<kDim> / 16; ++step) {
    ptx::GroupProduct<kDim, ptx::Operand::kRows>::start(
        out, p[step], ptx::advance_operand(operand, step * 2 * value_slab_bytes(kDim)), true);
  }
  ptx::products_commit();
}

/// Excludes keys at or beyond `valid` from the softmax.
template <int kDim>
__device__ void mask_scores(int valid, Scores<kDim>& scores) {
  const int column = static_cast<int>(threadIdx.x) % 4 * 2;
#pragma unroll
  for (int n = 0; n < kKeys<kDim> / 8; ++n) {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      if (n * 8 + column + i % 2 >= valid) scores[n][i] = -INFINITY;
    }
  }
}

/// Turns scores into weights relative to the new maximum; `rescale` is what everything summed
/// before must be multiplied with. Maxima and sums run in one chain per column of an accumulator:
/// with one warp per scheduler at this work, longer chains would leave the scheduler idle.
template <int kDim>
__device__ void update_softmax(float factor, Scores<kDim>& scores, Accumulator<kDim>& acc,
                               float (&rescale)[2]) {
  constexpr int kBlocks = kKeys<kDim> / 8;
  float maximum[4] = {scores[0][0], scores[0][1], scores[0][2], scores[0][3]};
#pragma unroll
  for (int n = 1; n < kBlocks; ++n) {
#pragma unroll
    for (int i = 0; i < 4; ++i) maximum[i] = fmaxf(maximum[i], scores[n][i]);
  }
  float offset[2];
#pragma unroll
  for (int r = 0; r < 2; ++r) {
    const float in_row = quad_max(fmaxf(maximum[2 * r], maximum[2 * r + 1]));
    const float updated = fmaxf(acc.maximum[r], in_row);
    rescale[r] = ptx::exp2_fast((acc.maximum[r] - updated) * factor);
    acc.maximum[r] = updated;
    offset[r] = updated * factor;
  }
  float sum[4] = {acc.sum[0] * rescale[0], 0.0f, acc.sum[1] * rescale[1], 0.0f};
#pragma unroll
  for (int n = 0; n < kBlocks; ++n) {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      scores[n][i] = ptx::exp2_fast(fmaf(scores[n][i], factor, -offset[i / 2]));
      sum[i] += scores[n][i];
    }
  }
  acc.sum[0] = sum[0] + sum[1];
  acc.sum[1] = sum[2] + sum[3];
}

template <int kDim>
__device__ void pack_weights(const Scores<kDim>& scores, Weights<kDim>& p) {
#pragma unroll
  for (int step = 0; step < kKeys<kDim> / 16; ++step) {
    const float(&left)[4] = scores[2 * step];
    const float(&right)[4] = scores[2 * step + 1];
    p[step][0] = pack_bf16(left[0], left[1]);
    p[step][1] = pack_bf16(left[2], left[3]);
    p[step][2] = pack_bf16(right[0], right[1]);
    p[step][3] = pack_bf16(right[2], right[3]);
  }
}

template <int kDim>
__device__ void rescale_out(const float (&rescale)[2], float (&out)[kDim / 8][4]) {
#pragma unroll
  for (int n = 0; n < kDim / 8; ++n) {
#pragma unroll
    for (int i = 0; i < 4; ++i) out[n][i] *= rescale[i / 2];
  }
}

/// Writes the 16 rows of a warp; `out` points at its first row and head.
template <int kDim>
__device__ void store_rows(const Accumulator<kDim>& acc, int valid_rows, std::int64_t stride,
                           __nv_bfloat16* out) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
#pragma unroll
  for (int r = 0; r < 2; ++r) {
    const float inverse = 1.0f / quad_sum(acc.sum[r]);
    const int row = lane / 4 + 8 * r;
    if (row >= valid_rows) continue;
#pragma unroll
    for (int n = 0; n < kDim / 8; ++n) {
      *reinterpret_cast<std::uint32_t*>(out + row * stride + n * 8 + lane % 4 * 2) =
          pack_bf16(acc.out[n][2 * r] * inverse, acc.out[n][2 * r + 1] * inverse);
    }
  }
}

/// Where a multiplying group stands in the ring of keys, of values, and of values it has used up.
struct Positions {
  Position keys;
  Position values;
  Position used;
};

/// Ends the products of the values of one step, and makes the weights of the next ready.
template <int kDim>
__device__ void finish_values(Barriers& barriers, bool under_way, const float (&rescale)[2],
                              const Scores<kDim>& scores, Positions& at, Accumulator<kDim>& acc,
                              Weights<kDim>& p) {
  ptx::products_wait<0>(acc.out);
  if (under_way) {
    release(barriers.values_empty[at.used.stage]);
    at.used.advance();
  }
  rescale_out<kDim>(rescale, acc.out);
  pack_weights<kDim>(scores, p);
}

/// The keys and values of one tile, step by step. The exponentials of a step stand at the end of
/// the loop and the wait for the products that run meanwhile at its head: a compiler that sees both
/// in one block waits first.
template <int kDim>
__device__ void attend(const Block<kDim>& block, int group, int sequence_rows,
                       const Queries<kDim>& q, Positions& at, Accumulator<kDim>& acc) {
  Shared<kDim>& s = block.shared;
  Barriers& barriers = s.barriers;
  const float factor = block.work.scale * kLog2E;
  const int num_steps = (sequence_rows + kKeys<kDim> - 1) / kKeys<kDim>;
  const int valid_in_last = sequence_rows - (num_steps - 1) * kKeys<kDim>;
  const int my_turn = kFirstTurnBarrier + group;
  const int other_turn = kFirstTurnBarrier + 1 - group;
  Scores<kDim> scores;
  Weights<kDim> p;
  float rescale[2];

  wait_full(barriers.keys_full[at.keys.stage], at.keys.phase);
  start_keys<kDim>(q, s.keys[at.keys.stage], scores);
  ptx::products_wait<0>(scores);
  release(barriers.keys_empty[at.keys.stage]);
  at.keys.advance();
  if (num_steps == 1) mask_scores<kDim>(valid_in_last, scores);
  update_softmax<kDim>(factor, scores, acc, rescale);

#pragma unroll 1
  for (int step = 1; step < num_steps; ++step) {
    finish_values<kDim>(barriers, step > 1, rescale, scores, at, acc, p);

    wait_full(barriers.keys_full[at.keys.stage], at.keys.phase);
    ptx::named_barrier_sync(my_turn, kConsumers * kGroup);
    start_keys<kDim>(q, s.keys[at.keys.stage], scores);
    wait_full(barriers.values_full[at.values.stage], at.values.phase);
    start_values<kDim>(p, s.values[at.values.stage], acc.out);
    ptx::named_barrier_arrive(other_turn, kConsumers * kGroup);
    at.values.advance();

    ptx::products_wait<1>(scores);
    release(barriers.keys_empty[at.keys.stage]);
    at.keys.advance();
    if (step + 1 == num_steps) mask_scores<kDim>(valid_in_last, scores);
    update_softmax<kDim>(factor, scores, acc, rescale);
  }
  finish_values<kDim>(barriers, num_steps > 1, rescale, scores, at, acc, p);
  wait_full(barriers.values_full[at.values.stage], at.values.phase);
  start_values<kDim>(p, s.values[at.values.stage], acc.out);
  ptx::products_wait<0>(acc.out);
  release(barriers.values_empty[at.used.stage]);
  at.values.advance();
  at.used.advance();
}

/// A multiplying group, number 0 or 1.
template <int kDim>
__device__ void consume(const Block<kDim>& block, int group) {
  const AttentionWork& w = block.work;
  const std::int64_t width = block.width();
  if (group == 1) ptx::named_barrier_arrive(kFirstTurnBarrier, kConsumers * kGroup);
  Positions at;
  for (int number = static_cast<int>(blockIdx.x); number < block.num_items();
       number += static_cast<int>(gridDim.x)) {
    const Item item = block.item(number);
    const int warp = static_cast<int>(threadIdx.x) % kGroup / 32;
    const int first_row = item.tile.first + group * kGroupQueries + warp * 16;
    const int valid_rows = item.tile.sequence_rows - first_row;
    const std::int64_t row = item.tile.sequence_begin + first_row;
    Queries<kDim> q;
    load_queries(w,
                 reinterpret_cast<const __nv_bfloat16*>(w.qkv) + row * 3 * width + item.head * kDim,
                 valid_rows, q);
    Accumulator<kDim> acc;
    attend<kDim>(block, group, item.tile.sequence_rows, q, at, acc);
    store_rows<kDim>(acc, valid_rows, width,
                     reinterpret_cast<__nv_bfloat16*>(w.out) + row * width + item.head * kDim);
  }
}

__device__ void init_barriers(Barriers& barriers) {
  constexpr int kConsumerWarps = kConsumers * kGroup / 32;
  for (int stage = 0; stage < kStages; ++stage) {
    ptx::barrier_init(ptx::shared_address(&barriers.keys_full[stage]), 1);
    ptx::barrier_init(ptx::shared_address(&barriers.values_full[stage]), 1);
    ptx::barrier_init(ptx::shared_address(&barriers.keys_empty[stage]), kConsumerWarps);
    ptx::barrier_init(ptx::shared_address(&barriers.values_empty[stage]), kConsumerWarps);
  }
  ptx::fence_for_matrix_unit();  // the copy engine sees the barriers
}

template <int kDim>
__global__ void __launch_bounds__(kThreads, 1)
    attention_wgmma_kernel(const __grid_constant__ AttentionWork w) {
  extern __shared__ __align__(128) std::byte memory[];
  Shared<kDim>& shared = *reinterpret_cast<Shared<kDim>*>(memory);
  auto* const starts = reinterpret_cast<SequenceStart*>(memory + sizeof(Shared<kDim>));
  if (threadIdx.x == 0) init_barriers(shared.barriers);
  wait_for_predecessor();
  const int num_sequences = live_sequences(w);
  if (threadIdx.x < 32) number_sequences(w.cu_seqlens, num_sequences, starts);
  __syncthreads();

  const Block<kDim> block{w, shared, starts, num_sequences, starts[num_sequences].tiles};
  const int group = static_cast<int>(threadIdx.x) / kGroup;
  if (group == kConsumers) {
    ptx::shrink_registers<kCopyRegisters>();
    if (threadIdx.x < kConsumers * kGroup + 32) produce<kDim>(block);  // its other warps rest
  } else {
    ptx::grow_registers<kConsumerRegisters>();
    consume<kDim>(block, group);
  }
}

template <int kDim>
void launch_dim(CudaStream& stream, const AttentionWork& w, int num_multiprocessors) {
  const std::size_t shared_bytes =
      sizeof(Shared<kDim>) + (static_cast<std::size_t>(w.max_seqs) + 1) * sizeof(SequenceStart);
  FOVEA_CUDA_CHECK(cudaFuncSetAttribute(&attention_wgmma_kernel<kDim>,
                                        cudaFuncAttributeMaxDynamicSharedMemorySize,
                                        static_cast<int>(shared_bytes)));
  const std::int64_t most_tiles = (w.rows + kQueries - 1) / kQueries + w.max_seqs;
  launch_attention_packing(stream, w);
  launch(stream, &attention_wgmma_kernel<kDim>,
         dim3(static_cast<unsigned>(
             std::min<std::int64_t>(most_tiles * w.num_heads, num_multiprocessors))),
         dim3(kThreads), shared_bytes, w);
}

}  // namespace

bool has_attention_wgmma(const AttentionWork& work) {
  const int dim = work.head_dim;
  const bool compiled = dim >= 64 && dim <= 128 && dim % 8 == 0 && dim != 104 && dim != 120;
  constexpr int kMaxSequences = 2048;  // their table takes 16 KB of shared memory
  return compiled && work.max_seqs <= kMaxSequences;
}

void launch_attention_wgmma(CudaStream& stream, const AttentionWork& work,
                            int num_multiprocessors) {
  const DeviceGuard guard(stream.device_index());
  switch (work.head_dim) {
    case 64: return launch_dim<64>(stream, work, num_multiprocessors);
    case 72: return launch_dim<72>(stream, work, num_multiprocessors);
    case 80: return launch_dim<80>(stream, work, num_multiprocessors);
    case 88: return launch_dim<88>(stream, work, num_multiprocessors);
    case 96: return launch_dim<96>(stream, work, num_multiprocessors);
    case 112: return launch_dim<112>(stream, work, num_multiprocessors);
    default: return launch_dim<128>(stream, work, num_multiprocessors);
  }
}

}  // namespace fovea::cuda
