// Rearranges keys and values for the Hopper attention kernel (attention_packing.h has the layout).
//
// One block per slab: eight rows of one sequence, all heads. A thread moves 16 bytes: neighbouring
// threads take the eight rows of a block, so that stores are contiguous and loads share sectors
// through L1. Blocks are numbered over the capacity and find their slab by scanning cu_seqlens;
// those left over clear rows of `out`. Traffic: 8 * rows * hidden bytes.
#include "ops/cuda/attention_packing.h"
#include "ops/cuda/attention_tiles.cuh"
#include "ops/cuda/launch.cuh"

namespace fovea::cuda {

namespace {

constexpr int kThreads = 256;

/// Writes the slab of one matrix: `from` is the first row and head, `to` the first head's slab.
__device__ void pack_slab(const AttentionWork& w, const __nv_bfloat16* from, int valid_rows,
                          int blocks, std::int64_t head_bytes, std::byte* to) {
  const std::int64_t row_stride = std::int64_t{3} * w.num_heads * w.head_dim;
  for (int i = static_cast<int>(threadIdx.x); i < w.num_heads * blocks * kSlabRows; i += kThreads) {
    const int row = i % kSlabRows;
    const int head = i / kSlabRows / blocks;
    const int block = i / kSlabRows - head * blocks;
    uint4 piece{};
    if (row < valid_rows && block * 8 < w.head_dim) {
      piece =
          *reinterpret_cast<const uint4*>(from + row * row_stride + head * w.head_dim + block * 8);
    }
    *reinterpret_cast<uint4*>(to + head * head_bytes + block * kBlockBytes + row * 16) = piece;
  }
}

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
  const int valid_rows = slab.sequence_rows - slab.first;
  const __nv_bfloat16* const queries = reinterpret_cast<const __nv_bfloat16*>(w.qkv) +
                                       (slab.sequence_begin + slab.first) * 3 * width;
  const int key_bytes = key_slab_bytes(w.head_dim);
  const int value_bytes = value_slab_bytes(w.head_dim);
  const std::int64_t slabs = max_slabs(w.rows, w.max_seqs);
  std::byte* const keys = w.workspace;
  std::byte* const values = keys + slabs * w.num_heads * key_bytes;
  pack_slab(w, queries + width, valid_rows, key_bytes / kBlockBytes, slabs * key_bytes,
            keys + std::int64_t{blockIdx.x} * key_bytes);
  pack_slab(w, queries + 2 * width, valid_rows, value_bytes / kBlockBytes, slabs * value_bytes,
            values + std::int64_t{blockIdx.x} * value_bytes);
}

}  // namespace

void launch_attention_packing(CudaStream& stream, const AttentionWork& w) {
  launch(stream, &attention_packing_kernel,
         dim3(static_cast<unsigned>(max_slabs(w.rows, w.max_seqs))), dim3(kThreads), 0, w);
}

}  // namespace fovea::cuda
