// Softmax attention over packed sequences with Hopper's warp-group instructions; the mathematics
// and the rounding are those of attention_mma.cu.
//
// One block of three warp groups per multiprocessor works through tiles of 128 query rows of one
// head. The first group only copies: keys and values in steps of 128, through two stages of shared
// memory, running ahead across tiles. The other two own 64 query rows each: the scores of a step
// are started before the values of the step before are multiplied, so exponentials and matrix
// products of a group overlap, and the two groups take turns in starting products, so that one
// multiplies while the other computes exponentials.
//
// Keys and values lie in shared memory as 8 x 8 blocks of 128 bytes without swizzle, 144 bytes
// apart: one layout that serves both as the transposed operand of q k^T and as the plain operand of
// p v, for every head dim that is a multiple of 8, with no padding of the second product. The 16
// spare bytes put neighbouring blocks of a row into different banks. Rows beyond the sequence
// arrive as zeros. Query rows stay in registers. Source of the schedule: Shah et al.,
// FlashAttention-3, section 3.
#include "ops/cuda/attention_tiles.cuh"
#include "ops/cuda/bf16.cuh"
#include "ops/cuda/launch.cuh"
#include "ops/cuda/ptx.cuh"
#include "ops/cuda/wgmma.cuh"

namespace fovea::cuda {

namespace {

constexpr int kGroup = 128;    // threads of a warp group
constexpr int kConsumers = 2;  // warp groups that multiply
constexpr int kThreads = (1 + kConsumers) * kGroup;
constexpr int kGroupQueries = 64;
constexpr int kQueries = kConsumers * kGroupQueries;
constexpr int kKeys = 128;
constexpr int kStages = 2;
constexpr int kProducerRegisters = 40;  // 40 + 2 * 232 per thread of the three groups fill the file
constexpr int kConsumerRegisters = 232;
constexpr int kFirstTurnBarrier = 1;  // named barriers 1 and 2; 0 is __syncthreads

/// Keys or values of one step in shared memory, in slabs of 8 rows.
template <int kDim>
struct Layout {
  static constexpr int kSteps = (kDim + 15) / 16;  // of 16 dims in q k^T
  static constexpr int kChunks = kDim / 8;         // of 8 dims that hold data
  static constexpr int kChunkBytes = 8 * 16 + 16;
  static constexpr int kSlabBytes = 2 * kSteps * kChunkBytes;
  static constexpr int kBytes = kKeys / 8 * kSlabBytes;
};

/// One direction of the hand-over between the copying group and the multiplying ones, per stage.
struct Barriers {
  std::uint64_t keys_full[kStages];
  std::uint64_t keys_empty[kStages];
  std::uint64_t values_full[kStages];
  std::uint64_t values_empty[kStages];
};

template <int kDim>
struct Shared {
  alignas(128) std::byte keys[kStages][Layout<kDim>::kBytes];
  alignas(128) std::byte values[kStages][Layout<kDim>::kBytes];
  Barriers barriers;
  // followed by tile_offsets[max_seqs + 1]: number of tiles before each sequence
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

using Scores = float[kKeys / 8][4];
using Weights = std::uint32_t[kKeys / 16][4];  // bf16, as the second product takes them

/// offsets[s] = tiles of all sequences before s, for s <= num_sequences. Run by one warp.
__device__ void number_tiles(const std::int32_t* cu_seqlens, int num_sequences, int* offsets) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  int before = 0;
  for (int base = 0; base < num_sequences; base += 32) {
    const int sequence = base + lane;
    const int rows = sequence < num_sequences ? cu_seqlens[sequence + 1] - cu_seqlens[sequence] : 0;
    int up_to_here = (rows + kQueries - 1) / kQueries;
#pragma unroll
    for (int offset = 1; offset < 32; offset *= 2) {
      const int lower = __shfl_up_sync(0xffffffffu, up_to_here, offset);
      if (lane >= offset) up_to_here += lower;
    }
    if (sequence < num_sequences) offsets[sequence + 1] = before + up_to_here;
    before += __shfl_sync(0xffffffffu, up_to_here, 31);
  }
  if (lane == 0) offsets[0] = 0;
}

/// The tile with a given number, by bisection in the offsets.
__device__ QueryTile tile_at(int number, const std::int32_t* cu_seqlens, int num_sequences,
                             const int* offsets) {
  int low = 0;
  int high = num_sequences;
  while (high - low > 1) {
    const int middle = (low + high) / 2;
    (offsets[middle] <= number ? low : high) = middle;
  }
  const int begin = cu_seqlens[low];
  return {begin, cu_seqlens[low + 1] - begin, (number - offsets[low]) * kQueries};
}

/// What every group of a block knows.
template <int kDim>
struct Block {
  const AttentionWork& work;
  Shared<kDim>& shared;
  const int* tile_offsets;
  int num_sequences;
  int num_tiles;  // of one head

  [[nodiscard]] __device__ std::int64_t width() const {
    return std::int64_t{work.num_heads} * kDim;
  }
  /// Tiles of one head follow each other, so that blocks at work share its keys and values in L2.
  [[nodiscard]] __device__ int num_items() const { return num_tiles * work.num_heads; }
  [[nodiscard]] __device__ QueryTile tile(int item) const {
    return tile_at(item % num_tiles, work.cu_seqlens, num_sequences, tile_offsets);
  }
  /// Query of the first row of a sequence; its key and value lie width() and 2 width() further.
  [[nodiscard]] __device__ const __nv_bfloat16* sequence(const QueryTile& tile, int item) const {
    return reinterpret_cast<const __nv_bfloat16*>(work.qkv) + tile.sequence_begin * 3 * width() +
           item / num_tiles * kDim;
  }
};

/// Starts copying rows [first, first + kKeys) of keys or values; zeros beyond the sequence. A row
/// is copied by 8 or 16 neighbouring threads, so that all addresses advance by constants.
template <int kDim>
__device__ void fetch(const __nv_bfloat16* rows, std::int64_t stride, int first, int sequence_rows,
                      std::byte* to) {
  using L = Layout<kDim>;
  constexpr int kLanes = L::kChunks <= 8 ? 8 : 16;
  constexpr int kRows = kGroup / kLanes;  // of one pass; a multiple of a slab
  const int chunk = static_cast<int>(threadIdx.x) % kLanes;
  const int row = static_cast<int>(threadIdx.x) / kLanes;
  if (chunk >= L::kChunks) return;
  const std::uint32_t shared =
      ptx::shared_address(to) + row / 8 * L::kSlabBytes + row % 8 * 16 + chunk * L::kChunkBytes;
  const __nv_bfloat16* from = rows + (first + row) * stride + chunk * 8;
  const int valid = sequence_rows - first - row;  // passes below this row number read memory
#pragma unroll
  for (int pass = 0; pass < kKeys / kRows; ++pass) {
    const bool exists = pass * kRows < valid;
    ptx::copy_async(shared + pass * (kRows / 8) * L::kSlabBytes, exists ? from : rows, exists);
    from += kRows * stride;
  }
}

/// The copying group.
template <int kDim>
__device__ void produce(const Block<kDim>& block) {
  Shared<kDim>& s = block.shared;
  const std::int64_t stride = 3 * block.width();
  Position at;
  for (int item = static_cast<int>(blockIdx.x); item < block.num_items();
       item += static_cast<int>(gridDim.x)) {
    const QueryTile tile = block.tile(item);
    const __nv_bfloat16* const keys = block.sequence(tile, item) + block.width();
    for (int first = 0; first < tile.sequence_rows; first += kKeys) {
      ptx::barrier_wait(ptx::shared_address(&s.barriers.keys_empty[at.stage]), at.phase ^ 1);
      fetch<kDim>(keys, stride, first, tile.sequence_rows, s.keys[at.stage]);
      ptx::barrier_arrive_after_copies(ptx::shared_address(&s.barriers.keys_full[at.stage]));
      ptx::barrier_wait(ptx::shared_address(&s.barriers.values_empty[at.stage]), at.phase ^ 1);
      fetch<kDim>(keys + block.width(), stride, first, tile.sequence_rows, s.values[at.stage]);
      ptx::barrier_arrive_after_copies(ptx::shared_address(&s.barriers.values_full[at.stage]));
      at.advance();
    }
  }
  const int covered = block.work.cu_seqlens[block.num_sequences];
  for (int head = 0; head < block.work.num_heads; ++head) {
    clear_rows(block.work, head, covered + static_cast<int>(blockIdx.x),
               static_cast<int>(gridDim.x), static_cast<int>(threadIdx.x), kGroup);
  }
  ptx::commit_copies();
  ptx::wait_copies<0>();
}

/// Waits until a stage is full and its bytes are visible to the matrix unit.
__device__ void wait_full(std::uint64_t& barrier, std::uint32_t phase) {
  ptx::barrier_wait(ptx::shared_address(&barrier), phase);
  ptx::fence_for_matrix_unit();
}

/// Tells the copying group that this warp has read a stage.
__device__ void release(std::uint64_t& barrier) {
  if (threadIdx.x % 32 == 0) ptx::barrier_arrive(ptx::shared_address(&barrier));
}

/// Starts scores = q k^T.
template <int kDim>
__device__ void start_keys(const std::uint32_t (&q)[Layout<kDim>::kSteps][4], const std::byte* keys,
                           Scores& scores) {
  using L = Layout<kDim>;
  const std::uint64_t operand =
      ptx::operand_descriptor(ptx::shared_address(keys), L::kChunkBytes, L::kSlabBytes);
  ptx::products_begin();
#pragma unroll
  for (int step = 0; step < L::kSteps; ++step) {
    ptx::GroupProduct<kKeys, ptx::Operand::kColumns>::start(
        scores, q[step], ptx::advance_operand(operand, step * 2 * L::kChunkBytes), step > 0);
  }
  ptx::products_commit();
}

/// Starts out += p v.
template <int kDim>
__device__ void start_values(const Weights& p, const std::byte* values, float (&out)[kDim / 8][4]) {
  using L = Layout<kDim>;
  const std::uint64_t operand =
      ptx::operand_descriptor(ptx::shared_address(values), L::kSlabBytes, L::kChunkBytes);
  ptx::products_begin();
#pragma unroll
  for (int step = 0; step < kKeys / 16; ++step) {
    ptx::GroupProduct<kDim, ptx::Operand::kRows>::start(
        out, p[step], ptx::advance_operand(operand, step * 2 * L::kSlabBytes), true);
  }
  ptx::products_commit();
}

/// Excludes keys at or beyond `valid` from the softmax.
__device__ void mask_scores(int valid, Scores& scores) {
  const int column = static_cast<int>(threadIdx.x) % 4 * 2;
#pragma unroll
  for (int n = 0; n < kKeys / 8; ++n) {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      if (n * 8 + column + i % 2 >= valid) scores[n][i] = -INFINITY;
    }
  }
}

/// Turns scores into weights relative to the new maximum; `rescale` is what everything summed
/// before must be multiplied with.
template <int kDim>
__device__ void update_softmax(float factor, Scores& scores, Accumulator<kDim>& acc,
                               float (&rescale)[2]) {
#pragma unroll
  for (int r = 0; r < 2; ++r) {
    float maximum = acc.maximum[r];
#pragma unroll
    for (int n = 0; n < kKeys / 8; ++n) {
      maximum = fmaxf(maximum, fmaxf(scores[n][2 * r], scores[n][2 * r + 1]));
    }
    maximum = quad_max(maximum);
    rescale[r] = ptx::exp2_fast((acc.maximum[r] - maximum) * factor);
    acc.maximum[r] = maximum;
    const float offset = maximum * factor;
    float sum = acc.sum[r] * rescale[r];
#pragma unroll
    for (int n = 0; n < kKeys / 8; ++n) {
#pragma unroll
      for (int i = 2 * r; i < 2 * r + 2; ++i) {
        scores[n][i] = ptx::exp2_fast(fmaf(scores[n][i], factor, -offset));
        sum += scores[n][i];
      }
    }
    acc.sum[r] = sum;
  }
}

__device__ void pack_weights(const Scores& scores, Weights& p) {
#pragma unroll
  for (int step = 0; step < kKeys / 16; ++step) {
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

/// The keys and values of one tile, step by step; `at` moves through the ring of stages.
template <int kDim>
__device__ void attend(const Block<kDim>& block, int group, int sequence_rows,
                       const std::uint32_t (&q)[Layout<kDim>::kSteps][4], Position& at,
                       Accumulator<kDim>& acc) {
  Shared<kDim>& s = block.shared;
  Barriers& barriers = s.barriers;
  const float factor = block.work.scale * kLog2E;
  const int num_steps = (sequence_rows + kKeys - 1) / kKeys;
  const int valid_in_last = sequence_rows - (num_steps - 1) * kKeys;
  const int my_turn = kFirstTurnBarrier + group;
  const int other_turn = kFirstTurnBarrier + 1 - group;
  Scores scores;
  Weights p;
  float rescale[2];

  wait_full(barriers.keys_full[at.stage], at.phase);
  start_keys<kDim>(q, s.keys[at.stage], scores);
  ptx::products_wait<0>(scores);
  release(barriers.keys_empty[at.stage]);
  if (num_steps == 1) mask_scores(valid_in_last, scores);
  update_softmax<kDim>(factor, scores, acc, rescale);  // nothing has been summed: no rescaling
  pack_weights(scores, p);

  Position previous = at;
  at.advance();
  for (int step = 1; step < num_steps; ++step) {
    wait_full(barriers.keys_full[at.stage], at.phase);
    ptx::named_barrier_sync(my_turn, kConsumers * kGroup);
    start_keys<kDim>(q, s.keys[at.stage], scores);
    wait_full(barriers.values_full[previous.stage], previous.phase);
    start_values<kDim>(p, s.values[previous.stage], acc.out);
    ptx::named_barrier_arrive(other_turn, kConsumers * kGroup);

    ptx::products_wait<1>(scores);
    release(barriers.keys_empty[at.stage]);
    if (step + 1 == num_steps) mask_scores(valid_in_last, scores);
    update_softmax<kDim>(factor, scores, acc, rescale);

    ptx::products_wait<0>(acc.out);
    release(barriers.values_empty[previous.stage]);
    rescale_out<kDim>(rescale, acc.out);
    pack_weights(scores, p);
    previous = at;
    at.advance();
  }
  wait_full(barriers.values_full[previous.stage], previous.phase);
  start_values<kDim>(p, s.values[previous.stage], acc.out);
  ptx::products_wait<0>(acc.out);
  release(barriers.values_empty[previous.stage]);
}

/// A multiplying group, number 0 or 1.
template <int kDim>
__device__ void consume(const Block<kDim>& block, int group) {
  const std::int64_t width = block.width();
  if (group == 1) ptx::named_barrier_arrive(kFirstTurnBarrier, kConsumers * kGroup);
  Position at;
  for (int item = static_cast<int>(blockIdx.x); item < block.num_items();
       item += static_cast<int>(gridDim.x)) {
    const QueryTile tile = block.tile(item);
    const int warp = static_cast<int>(threadIdx.x) % kGroup / 32;
    const int first_row = tile.first + group * kGroupQueries + warp * 16;
    const int valid_rows = tile.sequence_rows - first_row;
    std::uint32_t q[Layout<kDim>::kSteps][4];
    load_queries(block.work, block.sequence(tile, item) + first_row * 3 * width, valid_rows, q);
    Accumulator<kDim> acc;
    attend<kDim>(block, group, tile.sequence_rows, q, at, acc);
    store_rows<kDim>(acc, valid_rows, width,
                     reinterpret_cast<__nv_bfloat16*>(block.work.out) +
                         (tile.sequence_begin + first_row) * width + item / block.num_tiles * kDim);
  }
}

template <int kDim>
__device__ void init_shared(Shared<kDim>& s) {
  if (threadIdx.x == 0) {
    for (int stage = 0; stage < kStages; ++stage) {
      constexpr int kConsumerWarps = kConsumers * kGroup / 32;
      ptx::barrier_init(ptx::shared_address(&s.barriers.keys_full[stage]), kGroup);
      ptx::barrier_init(ptx::shared_address(&s.barriers.values_full[stage]), kGroup);
      ptx::barrier_init(ptx::shared_address(&s.barriers.keys_empty[stage]), kConsumerWarps);
      ptx::barrier_init(ptx::shared_address(&s.barriers.values_empty[stage]), kConsumerWarps);
    }
  }
  // Dims beyond the head up to a multiple of 16 are never copied: zero once, for all stages.
  if constexpr (Layout<kDim>::kSteps * 16 != kDim) {
    auto* const words = reinterpret_cast<uint4*>(s.keys);
    for (int i = static_cast<int>(threadIdx.x);
         i < static_cast<int>(sizeof(s.keys) / sizeof(uint4)); i += kThreads) {
      words[i] = uint4{};
    }
    ptx::fence_for_matrix_unit();
  }
}

template <int kDim>
__global__ void __launch_bounds__(kThreads, 1)
    attention_wgmma_kernel(const __grid_constant__ AttentionWork w) {
  extern __shared__ __align__(128) std::byte memory[];
  Shared<kDim>& shared = *reinterpret_cast<Shared<kDim>*>(memory);
  auto* const tile_offsets = reinterpret_cast<int*>(memory + sizeof(Shared<kDim>));
  init_shared<kDim>(shared);
  wait_for_predecessor();
  const int num_sequences = live_sequences(w);
  if (threadIdx.x < 32) number_tiles(w.cu_seqlens, num_sequences, tile_offsets);
  __syncthreads();

  const Block<kDim> block{w, shared, tile_offsets, num_sequences, tile_offsets[num_sequences]};
  const int group = static_cast<int>(threadIdx.x) / kGroup;
  if (group == 0) {
    ptx::shrink_registers<kProducerRegisters>();
    produce<kDim>(block);
  } else {
    ptx::grow_registers<kConsumerRegisters>();
    consume<kDim>(block, group - 1);
  }
}

template <int kDim>
void launch_dim(CudaStream& stream, const AttentionWork& w, int num_multiprocessors) {
  const std::size_t shared_bytes =
      sizeof(Shared<kDim>) + (static_cast<std::size_t>(w.max_seqs) + 1) * sizeof(int);
  FOVEA_CUDA_CHECK(cudaFuncSetAttribute(&attention_wgmma_kernel<kDim>,
                                        cudaFuncAttributeMaxDynamicSharedMemorySize,
                                        static_cast<int>(shared_bytes)));
  const std::int64_t most_tiles = (w.rows + kQueries - 1) / kQueries + w.max_seqs;
  launch(stream, &attention_wgmma_kernel<kDim>,
         dim3(static_cast<unsigned>(
             std::min<std::int64_t>(most_tiles * w.num_heads, num_multiprocessors))),
         dim3(kThreads), shared_bytes, w);
}

}  // namespace

bool has_attention_wgmma(const AttentionWork& work) {
  const int dim = work.head_dim;
  const bool compiled = dim >= 64 && dim <= 128 && dim % 8 == 0 && dim != 104 && dim != 120;
  constexpr int kMaxSequences = 8192;  // their tile offsets take 32 KB of shared memory
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
