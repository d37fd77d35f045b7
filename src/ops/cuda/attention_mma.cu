// Softmax attention over packed sequences with the tensor-core instructions of one warp.
//
// A block of four warps computes 64 query rows of one head; a warp owns 16 of them, so the running
// maximum, sum and output of a row live in the four lanes that hold its scores. Keys and values
// come in blocks of 64, counted from the start of the sequence, double-buffered in shared memory;
// rows beyond the sequence are read as zeros and their scores masked. Scores never leave registers:
//   m' = max(m, max_j s_j),  p_j = 2^((s_j - m') scale log2 e),
//   l' = l 2^((m - m') scale log2 e) + sum_j p_j,  o' = o 2^((m - m') scale log2 e) + sum_j p_j v_j
// and the result is o / l. Statistics and sums are f32; p is rounded to bf16 for the second
// product, and the result once. Head dims are padded to a multiple of 16 with zeros in shared
// memory. Source: Dao, FlashAttention-2, algorithm 1.
//
// Blocks are numbered over the capacity and find their tile by scanning cu_seqlens; those left over
// write zeros to the rows that no sequence covers.
#include "ops/cuda/attention_tiles.cuh"
#include "ops/cuda/bf16.cuh"
#include "ops/cuda/launch.cuh"
#include "ops/cuda/ptx.cuh"

namespace fovea::cuda {

namespace {

constexpr int kWarps = 4;
constexpr int kThreads = kWarps * 32;
constexpr int kQueries = kWarps * 16;  // of a block
constexpr int kKeys = 64;              // of a step
constexpr int kStages = 2;

/// Shared memory of one step: keys and values, each [kKeys][kDim], rows padded by 16 bytes so that
/// eight rows of a matrix load fall into different banks.
template <int kDim>
struct Stage {
  static constexpr int kStride = kDim + 8;  // elements
  __nv_bfloat16 keys[kKeys][kStride];
  __nv_bfloat16 values[kKeys][kStride];
};

/// One row per lane group: running maximum and sum of the two rows a lane takes part in.
template <int kDim>
struct Accumulator {
  float out[kDim / 8][4] = {};
  float maximum[2] = {-INFINITY, -INFINITY};
  float sum[2] = {};
};

/// Starts copying keys and values [first, first + kKeys) of a sequence; zeros beyond its end.
template <int kDim>
__device__ void fetch(const __nv_bfloat16* keys, std::int64_t value_offset, std::int64_t stride,
                      int first, int sequence_rows, int head_dim, Stage<kDim>& stage) {
  constexpr int kPieces = kDim / 8;  // 16-byte pieces of a row
  for (int i = static_cast<int>(threadIdx.x); i < kKeys * kPieces; i += kThreads) {
    const int row = i / kPieces;
    const int dim = (i - row * kPieces) * 8;
    const bool valid = first + row < sequence_rows && dim < head_dim;
    const __nv_bfloat16* const from = valid ? keys + (first + row) * stride + dim : keys;
    ptx::copy_async(ptx::shared_address(&stage.keys[row][dim]), from, valid);
    ptx::copy_async(ptx::shared_address(&stage.values[row][dim]), from + value_offset, valid);
  }
}

/// scores[16 x kKeys] = q k^T of one warp.
template <int kDim>
__device__ void multiply_keys(const std::uint32_t (&q)[kDim / 16][4], const Stage<kDim>& stage,
                              float (&scores)[kKeys / 8][4]) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const int key = lane / 16 * 8 + lane % 8;
  const int dim = lane / 8 % 2 * 8;
#pragma unroll
  for (int step = 0; step < kDim / 16; ++step) {
#pragma unroll
    for (int pair = 0; pair < kKeys / 16; ++pair) {
      std::uint32_t k[4];
      ptx::load_matrices(ptx::shared_address(&stage.keys[pair * 16 + key][step * 16 + dim]), k);
      ptx::multiply_add(scores[2 * pair], q[step], k[0], k[1]);
      ptx::multiply_add(scores[2 * pair + 1], q[step], k[2], k[3]);
    }
  }
}

/// Turns scores into weights relative to the new maximum and rescales what was summed before.
template <int kDim>
__device__ void update_softmax(float factor, float (&scores)[kKeys / 8][4],
                               Accumulator<kDim>& acc) {
#pragma unroll
  for (int r = 0; r < 2; ++r) {
    float maximum = acc.maximum[r];
#pragma unroll
    for (int n = 0; n < kKeys / 8; ++n) {
      maximum = fmaxf(maximum, fmaxf(scores[n][2 * r], scores[n][2 * r + 1]));
    }
    maximum = quad_max(maximum);
    const float rescale = ptx::exp2_fast((acc.maximum[r] - maximum) * factor);
    acc.maximum[r] = maximum;
    acc.sum[r] *= rescale;
#pragma unroll
    for (int n = 0; n < kDim / 8; ++n) {
      acc.out[n][2 * r] *= rescale;
      acc.out[n][2 * r + 1] *= rescale;
    }
    const float offset = maximum * factor;
#pragma unroll
    for (int n = 0; n < kKeys / 8; ++n) {
#pragma unroll
      for (int i = 2 * r; i < 2 * r + 2; ++i) {
        scores[n][i] = ptx::exp2_fast(scores[n][i] * factor - offset);
        acc.sum[r] += scores[n][i];
      }
    }
  }
}

/// acc.out[16 x kDim] += weights v of one warp.
template <int kDim>
__device__ void multiply_values(const float (&weights)[kKeys / 8][4], const Stage<kDim>& stage,
                                Accumulator<kDim>& acc) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const int key = lane % 16;
  const int dim = lane / 16 * 8;
#pragma unroll
  for (int step = 0; step < kKeys / 16; ++step) {
    const float(&left)[4] = weights[2 * step];
    const float(&right)[4] = weights[2 * step + 1];
    const std::uint32_t p[4] = {pack_bf16(left[0], left[1]), pack_bf16(left[2], left[3]),
                                pack_bf16(right[0], right[1]), pack_bf16(right[2], right[3])};
#pragma unroll
    for (int pair = 0; pair < kDim / 16; ++pair) {
      std::uint32_t v[4];
      ptx::load_matrices_transposed(
          ptx::shared_address(&stage.values[step * 16 + key][pair * 16 + dim]), v);
      ptx::multiply_add(acc.out[2 * pair], p, v[0], v[1]);
      ptx::multiply_add(acc.out[2 * pair + 1], p, v[2], v[3]);
    }
  }
}

/// Excludes keys at or beyond `valid` from the softmax.
__device__ void mask_scores(int valid, float (&scores)[kKeys / 8][4]) {
  const int column = static_cast<int>(threadIdx.x) % 4 * 2;
#pragma unroll
  for (int n = 0; n < kKeys / 8; ++n) {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      if (n * 8 + column + i % 2 >= valid) scores[n][i] = -INFINITY;
    }
  }
}

/// Writes the 16 rows of a warp; `out` points at its first row and head.
template <int kDim>
__device__ void store_rows(const Accumulator<kDim>& acc, int valid_rows, int head_dim,
                           std::int64_t stride, __nv_bfloat16* out) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
#pragma unroll
  for (int r = 0; r < 2; ++r) {
    const float inverse = 1.0f / quad_sum(acc.sum[r]);
    const int row = lane / 4 + 8 * r;
    if (row >= valid_rows) continue;
#pragma unroll
    for (int n = 0; n < kDim / 8; ++n) {
      if (n * 8 >= head_dim) continue;
      *reinterpret_cast<std::uint32_t*>(out + row * stride + n * 8 + lane % 4 * 2) =
          pack_bf16(acc.out[n][2 * r] * inverse, acc.out[n][2 * r + 1] * inverse);
    }
  }
}

template <int kDim>
__global__ void __launch_bounds__(kThreads) attention_mma_kernel(AttentionWork w) {
  extern __shared__ __align__(16) std::byte shared[];
  auto* const stages = reinterpret_cast<Stage<kDim>*>(shared);
  wait_for_predecessor();
  const int head = static_cast<int>(blockIdx.y);
  const int num_sequences = live_sequences(w);
  int index = static_cast<int>(blockIdx.x);
  QueryTile tile;
  if (!find_tile(w.cu_seqlens, num_sequences, kQueries, index, tile)) {
    const int idle_blocks = static_cast<int>(gridDim.x) - (static_cast<int>(blockIdx.x) - index);
    return clear_rows(w, head, w.cu_seqlens[num_sequences] + index, idle_blocks,
                      static_cast<int>(threadIdx.x), kThreads);
  }

  const std::int64_t width = std::int64_t{w.num_heads} * w.head_dim;
  const std::int64_t stride = 3 * width;
  const __nv_bfloat16* const sequence = reinterpret_cast<const __nv_bfloat16*>(w.qkv) +
                                        tile.sequence_begin * stride + head * w.head_dim;
  const __nv_bfloat16* const keys = sequence + width;
  const int num_steps = (tile.sequence_rows + kKeys - 1) / kKeys;
  fetch(keys, width, stride, 0, tile.sequence_rows, w.head_dim, stages[0]);
  ptx::commit_copies();

  const int first_row = tile.first + static_cast<int>(threadIdx.x) / 32 * 16;  // of this warp
  const int valid_rows = tile.sequence_rows - first_row;
  std::uint32_t q[kDim / 16][4];
  load_queries(w, sequence + first_row * stride, valid_rows, q);

  Accumulator<kDim> acc;
  for (int step = 0; step < num_steps; ++step) {
    if (step + 1 < num_steps) {
      fetch(keys, width, stride, (step + 1) * kKeys, tile.sequence_rows, w.head_dim,
            stages[(step + 1) % kStages]);
    }
    ptx::commit_copies();
    ptx::wait_copies<1>();
    __syncthreads();
    const Stage<kDim>& stage = stages[step % kStages];
    float scores[kKeys / 8][4] = {};
    multiply_keys<kDim>(q, stage, scores);
    if (step + 1 == num_steps) mask_scores(tile.sequence_rows - step * kKeys, scores);
    update_softmax<kDim>(w.scale * kLog2E, scores, acc);
    multiply_values<kDim>(scores, stage, acc);
    __syncthreads();  // everyone has read this stage before it is filled again
  }
  __nv_bfloat16* const out = reinterpret_cast<__nv_bfloat16*>(w.out) +
                             (tile.sequence_begin + first_row) * width + head * w.head_dim;
  store_rows<kDim>(acc, valid_rows, w.head_dim, width, out);
}

template <int kDim>
void launch_dim(CudaStream& stream, const AttentionWork& w) {
  constexpr std::size_t kSharedBytes = kStages * sizeof(Stage<kDim>);
  if constexpr (kSharedBytes > 48 * 1024) {  // more than a kernel gets without asking
    FOVEA_CUDA_CHECK(cudaFuncSetAttribute(&attention_mma_kernel<kDim>,
                                          cudaFuncAttributeMaxDynamicSharedMemorySize,
                                          static_cast<int>(kSharedBytes)));
  }
  const int tiles = (w.rows + kQueries - 1) / kQueries + w.max_seqs;  // the most there can be
  launch(stream, &attention_mma_kernel<kDim>,
         dim3(static_cast<unsigned>(tiles), static_cast<unsigned>(w.num_heads)), dim3(kThreads),
         kSharedBytes, w);
}

}  // namespace

void launch_attention_mma(CudaStream& stream, const AttentionWork& work) {
  const DeviceGuard guard(stream.device_index());
  switch ((work.head_dim + 15) / 16) {
    case 1: return launch_dim<16>(stream, work);
    case 2: return launch_dim<32>(stream, work);
    case 3: return launch_dim<48>(stream, work);
    case 4: return launch_dim<64>(stream, work);
    case 5: return launch_dim<80>(stream, work);
    case 6: return launch_dim<96>(stream, work);
    case 7: return launch_dim<112>(stream, work);
    default: return launch_dim<128>(stream, work);
  }
}

}  // namespace fovea::cuda
