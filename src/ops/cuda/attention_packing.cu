// Rearranges keys and values for the Hopper attention kernel (attention_packing.h has the layout).
//
// One block per slab: eight rows of one sequence, all heads. A thread moves 16 bytes: neighbouring
// threads take the eight rows of a block, so that stores are contiguous and loads share sectors
// through L1. Blocks are numbered over the capacity and find their slab by scanning cu_seqlens;
// those left over clear rows of `out`. Traffic: 8 * rows * hidden bytes.
//
// With rotary angles, a thread keeps those of four dims and their partners in one row, and rotates
// queries and keys of several heads with them. The traffic becomes 12 * rows * hidden bytes, where
// a rotation of its own would have cost 8 more.
#include "ops/cuda/attention_packing.h"
#include "ops/cuda/attention_tiles.cuh"
#include "ops/cuda/launch.cuh"
#include "ops/cuda/rotate.cuh"

namespace fovea::cuda {

namespace {

constexpr int kThreads = 256;

/// What becomes of the keys, or of the values, of one slab.
struct Slab {
  __nv_bfloat16* rows;      ///< first row, first head
  int valid_rows;           ///< of eight that belong to the sequence
  int blocks;               ///< of a row
  std::byte* to;            ///< of the first head
  std::int64_t head_bytes;  ///< from one head to the next
};

constexpr std::uint32_t kBf16One = 0x3f80u;

/// Keys of one row and block: beyond the sequence those of its last row.
__device__ uint4 keys_of(const AttentionWork& w, const Slab& slab, int head, int row, int block) {
  if (block * 8 >= w.head_dim) return {};
  const std::int64_t stride = std::int64_t{3} * w.num_heads * w.head_dim;
  uint4 keys = *reinterpret_cast<const uint4*>(slab.rows + min(row, slab.valid_rows - 1) * stride +
                                               head * w.head_dim + block * 8);
  for (std::uint32_t* pair : {&keys.x, &keys.y, &keys.z, &keys.w})
    *pair = (*pair & w.keep) ^ w.flip;
  return keys;
}

/// Values of one row and block, and the 1 behind them: beyond the sequence zeros.
__device__ uint4 values_of(const AttentionWork& w, const Slab& slab, int head, int row, int block) {
  if (row >= slab.valid_rows) return {};
  if (block * 8 >= w.head_dim) return {kBf16One, 0, 0, 0};
  const std::int64_t stride = std::int64_t{3} * w.num_heads * w.head_dim;
  return *reinterpret_cast<const uint4*>(slab.rows + row * stride + head * w.head_dim + block * 8);
}

template <class PieceOf>
__device__ void write_slab(const AttentionWork& w, const Slab& slab, PieceOf piece_of) {
  for (int i = static_cast<int>(threadIdx.x); i < w.num_heads * slab.blocks * kSlabRows;
       i += kThreads) {
    const int row = i % kSlabRows;
    const int head = i / kSlabRows / slab.blocks;
    const int block = i / kSlabRows - head * slab.blocks;
    *reinterpret_cast<uint4*>(slab.to + head * slab.head_bytes + block * kBlockBytes + row * 16) =
        piece_of(w, slab, head, row, block);
  }
}

/// Four dims of a key where they belong in a slab; `slab` is that of the head.
__device__ void store_key(std::byte* slab, int row, int dim, const float (&key)[4]) {
  store_floats(reinterpret_cast<__nv_bfloat16*>(slab + dim / 8 * kBlockBytes + row * 16) + dim % 8,
               key);
}

/// Rotates the queries of a slab in place and its keys into `keys`, head by head. Queries begin
/// `width` elements before the keys; rows beyond the sequence repeat its last key.
__device__ void rotate_slab(const AttentionWork& w, const Slab& keys, std::int64_t width,
                            int first_row) {
  const int half = w.head_dim / 2;
  const int pieces = half / 4;
  const int team = kSlabRows * pieces;  // threads that work on one head
  const int thread = static_cast<int>(threadIdx.x) % team;
  const int first_head = static_cast<int>(threadIdx.x) / team;
  if (first_head >= kThreads / team) return;
  const int row = thread / pieces;
  const int dim = (thread - row * pieces) * 4;
  const int from_row = min(row, keys.valid_rows - 1);
  const Angles<4> angles(w.cos + std::int64_t{first_row + from_row} * half + dim,
                         w.sin + std::int64_t{first_row + from_row} * half + dim);
  __nv_bfloat16* const key_row = keys.rows + from_row * 3 * width + dim;
  for (int head = first_head; head < w.num_heads; head += kThreads / team) {
    __nv_bfloat16* const key = key_row + head * w.head_dim;
    RotaryPair<4> x = load_pair<4>(key, half);
    rotate(angles, x);
    std::byte* const slab = keys.to + head * keys.head_bytes;
    store_key(slab, row, dim, x.low);
    store_key(slab, row, dim + half, x.high);
    if (dim == 0 && w.head_dim / 8 < keys.blocks) {
      *reinterpret_cast<uint4*>(slab + w.head_dim / 8 * kBlockBytes + row * 16) = uint4{};
    }
    if (row >= keys.valid_rows) continue;
    x = load_pair<4>(key - width, half);
    rotate(angles, x);
    store_pair(x, key - width, half);
  }
}

template <bool kRotary>
__global__ void __launch_bounds__(kThreads) attention_packing_kernel(AttentionWork w) {
  wait_for_predecessor();
  const int num_sequences = live_sequences(w);
  int index = static_cast<int>(blockIdx.x);
  QueryTile slab;
  if (!find_tile(w.cu_seqlens, num_sequences, kSlabRows, index, slab)) {
    const int idle_blocks = static_cast<int>(gridDim.x) - (static_cast<int>(blockIdx.x) - index);
    for (int head = 0; head < w.num_heads; ++head) {
      clear_rows(w, head, w.cu_seqlens[num_sequences] + index, idle_blocks,
                 static_cast<int>(threadIdx.x), kThreads);
    }
    return;
  }
  const std::int64_t width = std::int64_t{w.num_heads} * w.head_dim;
  const int valid_rows = min(slab.sequence_rows - slab.first, kSlabRows);
  const int first_row = slab.sequence_begin + slab.first;
  __nv_bfloat16* const queries = reinterpret_cast<__nv_bfloat16*>(w.qkv) + first_row * 3 * width;
  const int key_bytes = key_slab_bytes(w.head_dim);
  const int value_bytes = value_slab_bytes(w.head_dim);
  const std::int64_t slabs = max_slabs(w.rows, w.max_seqs);
  std::byte* const values = w.workspace + slabs * w.num_heads * key_bytes;
  const Slab keys{queries + width, valid_rows, key_bytes / kBlockBytes,
                  w.workspace + std::int64_t{blockIdx.x} * key_bytes, slabs * key_bytes};
  if constexpr (kRotary) {
    rotate_slab(w, keys, width, first_row);
  } else {
    write_slab(w, keys, keys_of);
  }
  write_slab(w,
             {queries + 2 * width, valid_rows, value_bytes / kBlockBytes,
              values + std::int64_t{blockIdx.x} * value_bytes, slabs * value_bytes},
             values_of);
  if (blockIdx.x == 0) {
    std::byte* const zeros = values + slabs * w.num_heads * value_bytes;
    for (int i = static_cast<int>(threadIdx.x) * 16; i < value_bytes; i += kThreads * 16) {
      *reinterpret_cast<uint4*>(zeros + i) = uint4{};
    }
  }
}

}  // namespace

void launch_attention_packing(CudaStream& stream, const AttentionWork& w) {
  launch(stream,
         w.cos == nullptr ? &attention_packing_kernel<false> : &attention_packing_kernel<true>,
         dim3(static_cast<unsigned>(max_slabs(w.rows, w.max_seqs))), dim3(kThreads), 0, w);
}

}  // namespace fovea::cuda
