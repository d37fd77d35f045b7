// Rearranges keys and values for the Hopper attention kernel (common/packed_heads.h has the
// layout), and rotates keys and queries if there are rotary angles.
//
// One CTA per slab: eight rows of one sequence, all heads or as many as fit. One warp per row
// copies its part of qkv and the angles to shared memory, all of it asynchronously; then threads
// store pieces of 16 bytes, neighbouring threads to neighbouring addresses. CTAs are numbered
// over the capacity and find their slab by scanning cu_seqlens.
//
// Traffic: 8 * rows * hidden bytes, 12 with angles. A separate kernel for the rotation would add 8.
#include "ops/cuda/attention/work.h"
#include "ops/cuda/common/bf16.cuh"
#include "ops/cuda/common/lanes.cuh"
#include "ops/cuda/common/launch.cuh"
#include "ops/cuda/common/sequences.cuh"
#include "ops/cuda/ptx/ptx.cuh"
#include "ops/cuda/rowwise/rotate.cuh"

namespace fovea::cuda {

namespace {

constexpr int kThreads = kSlabRows * kWarp;  // one warp per row
constexpr int kCtasPerSm = 6;
constexpr int kMostShared = 32 << 10;  // bytes of a CTA, so that kCtasPerSm fit an SM

/// Sizes of a CTA's work. Its part of a row in shared memory is [q] k v of its heads.
struct PackingPlan {
  int heads;      ///< of a CTA; the last one may have fewer
  int parts;      ///< 3 with angles, else 2: without q
  int row_bytes;  ///< in shared memory, padded
  int angle_row;  ///< floats of cos, or of sin, padded; 0 without angles
  int shared_bytes;
};

/// Bytes from row to row in shared memory: 16 more than a multiple of 128, so that the same piece
/// of eight rows lies in different banks.
int padded(int bytes) { return (bytes - 16 + 127) / 128 * 128 + 16; }

PackingPlan plan_packing(const AttentionWork& w, int heads) {
  const int parts = w.cos == nullptr ? 2 : 3;
  const int row_bytes = padded(parts * heads * w.head_dim * 2);
  const int angle_row = w.cos == nullptr ? 0 : padded(w.head_dim / 2 * 4) / 4;
  const int angle_bytes = 2 * angle_row * static_cast<int>(sizeof(float));
  return {heads, parts, row_bytes, angle_row, kSlabRows * (row_bytes + angle_bytes)};
}

/// All heads in a CTA, or as few CTAs per slab as fit into shared memory.
PackingPlan plan_packing(const AttentionWork& w) {
  PackingPlan plan = plan_packing(w, w.num_heads);
  for (int blocks = 2; plan.shared_bytes > kMostShared && plan.heads > 1; ++blocks)
    plan = plan_packing(w, (w.num_heads + blocks - 1) / blocks);
  return plan;
}

/// A slab in shared memory.
struct Rows {
  const std::byte* memory;
  const float* cos;  ///< of the first row, or null
  const float* sin;
  PackingPlan plan;
  int part_bytes;  ///< of q, k or v of the CTA's heads
  int head_dim;

  __device__ const __nv_bfloat16* at(int row, int part, int head) const {
    return reinterpret_cast<const __nv_bfloat16*>(memory + row * plan.row_bytes +
                                                  part * part_bytes) +
           head * head_dim;
  }
};

/// Dims [dim, dim + 8) of a head, rotated. The boundary between the halves of a head may lie in the
/// middle of them, but not within four.
__device__ uint4 rotated_piece(const Rows& rows, int row, const __nv_bfloat16* head, int dim) {
  const int half = rows.head_dim / 2;
  float values[8];
  load_floats(head + dim, values);
#pragma unroll
  for (int i = 0; i < 8; i += 4) {
    const bool second = dim + i >= half;
    const int j = second ? dim + i - half : dim + i;
    float partner[4];
    load_floats(head + (second ? j : j + half), partner);
    const Angles<4> angles(rows.cos + row * rows.plan.angle_row + j,
                           rows.sin + row * rows.plan.angle_row + j);
#pragma unroll
    for (int k = 0; k < 4; ++k) {
      values[i + k] = rotated(values[i + k], partner[k], angles.cosine[k], angles.sine[k], second);
    }
  }
  return {pack_bf16(values[0], values[1]), pack_bf16(values[2], values[3]),
          pack_bf16(values[4], values[5]), pack_bf16(values[6], values[7])};
}

/// Eight dims of a query or key: rotated, or with the sign of the scale applied.
template <bool kRotary>
__device__ uint4 piece_of(const AttentionWork& w, const Rows& rows, int row, int part, int head,
                          int dim) {
  const __nv_bfloat16* const from = rows.at(row, part, head);
  if constexpr (kRotary) return rotated_piece(rows, row, from, dim);
  uint4 piece = *reinterpret_cast<const uint4*>(from + dim);
  for (std::uint32_t* pair : {&piece.x, &piece.y, &piece.z, &piece.w})
    *pair = (*pair & w.keep) ^ w.flip;
  return piece;
}

/// Calls write(head, block, row) for every piece of one operand; neighbouring threads take the rows
/// of a block.
template <class Write>
__device__ void for_each_piece(int heads, int blocks, Write write) {
  for (int i = static_cast<int>(threadIdx.x); i < heads * blocks * kSlabRows; i += kThreads) {
    const int head = i / kSlabRows / blocks;
    write(head, i / kSlabRows - head * blocks, i % kSlabRows);
  }
}

/// Starts the copies of one row, by one warp.
__device__ void fetch_row(const AttentionWork& w, const PackingPlan& plan, int row,
                          std::int64_t global_row, int first_head, int part_bytes,
                          std::byte* memory, float* cos, float* sin) {
  const int lane = lane_index();
  const std::int64_t width = std::int64_t{w.num_heads} * w.head_dim;
  for (int part = 0; part < plan.parts; ++part) {
    const std::byte* const from =
        w.qkv + (global_row * 3 * width + (part + 3 - plan.parts) * width +
                 std::int64_t{first_head} * w.head_dim) *
                    2;
    const std::uint32_t to = ptx::shared_address(memory + row * plan.row_bytes + part * part_bytes);
    for (int at = lane * 16; at < part_bytes; at += kWarp * 16)
      ptx::copy_async(to + at, from + at, true);
  }
  const int half = w.head_dim / 2;
  for (int at = lane * 4; plan.angle_row > 0 && at < half; at += kWarp * 4) {
    ptx::copy_async(ptx::shared_address(cos + row * plan.angle_row + at),
                    w.cos + global_row * half + at, true);
    ptx::copy_async(ptx::shared_address(sin + row * plan.angle_row + at),
                    w.sin + global_row * half + at, true);
  }
}

template <bool kRotary>
__global__ void __launch_bounds__(kThreads, kCtasPerSm)
    attention_packing_kernel(AttentionWork w, PackingPlan plan) {
  extern __shared__ __align__(16) std::byte memory[];
  let_successor_start();
  int index = static_cast<int>(blockIdx.x);
  QueryTile slab;
  const bool found = find_tile(w.cu_seqlens, live_sequences(w), kSlabRows, index, slab);
  wait_for_predecessor();
  if (!found) return;
  const int first_head = static_cast<int>(blockIdx.y) * plan.heads;
  const int heads = min(plan.heads, w.num_heads - first_head);
  const int part_bytes = heads * w.head_dim * 2;
  const int valid_rows = min(slab.sequence_rows - slab.first, kSlabRows);
  const std::int64_t first_row = slab.sequence_begin + slab.first;
  float* const cos = reinterpret_cast<float*>(memory + kSlabRows * plan.row_bytes);
  float* const sin = cos + kSlabRows * plan.angle_row;
  const int warp = static_cast<int>(threadIdx.x) / kWarp;
  if (warp < valid_rows) {
    fetch_row(w, plan, warp, first_row + warp, first_head, part_bytes, memory, cos, sin);
  }
  ptx::commit_copies();
  ptx::wait_copies<0>();
  __syncthreads();

  const Rows rows{memory, cos, sin, plan, part_bytes, w.head_dim};
  const int dim_blocks = w.head_dim / 8;
  const int key_bytes = key_slab_bytes(w.head_dim);
  const int value_bytes = value_slab_bytes(w.head_dim);
  const int number = first_slab(slab.sequence, slab.sequence_begin) + slab.first / kSlabRows;
  const auto place = [](std::byte* to, int block, int row) {
    return reinterpret_cast<uint4*>(to + block * kSlabBlockBytes + row * 16);
  };
  // Keys: beyond the sequence those of its last row, beyond the head zeros.
  for_each_piece(heads, key_bytes / kSlabBlockBytes, [&](int head, int block, int row) {
    const int from_row = min(row, valid_rows - 1);
    *place(packed_keys(w, first_head + head, number), block, row) =
        block < dim_blocks ? piece_of<kRotary>(w, rows, from_row, plan.parts - 2, head, block * 8)
                           : uint4{};
  });
  // Values, and the 1 behind them: beyond the sequence zeros.
  for_each_piece(heads, value_bytes / kSlabBlockBytes, [&](int head, int block, int row) {
    uint4 piece{};
    if (row < valid_rows && block == dim_blocks) piece.x = kBf16One;
    if (row < valid_rows && block < dim_blocks) {
      piece = *reinterpret_cast<const uint4*>(rows.at(row, plan.parts - 1, head) + block * 8);
    }
    *place(packed_values(w, first_head + head, number), block, row) = piece;
  });
  if constexpr (kRotary) {  // queries, where they were
    auto* const queries = reinterpret_cast<__nv_bfloat16*>(w.qkv) +
                          (first_row + warp) * 3 * w.num_heads * w.head_dim +
                          first_head * w.head_dim;
    for (int i = lane_index(); warp < valid_rows && i < heads * dim_blocks; i += kWarp) {
      const int head = i / dim_blocks;
      *reinterpret_cast<uint4*>(queries + i * 8) =
          piece_of<kRotary>(w, rows, warp, 0, head, (i - head * dim_blocks) * 8);
    }
  }
}

}  // namespace

void launch_attention_packing(CudaStream& stream, const AttentionWork& w) {
  const PackingPlan plan = plan_packing(w);
  const auto kernel =
      w.cos == nullptr ? &attention_packing_kernel<false> : &attention_packing_kernel<true>;
  launch(stream, kernel,
         dim3(static_cast<unsigned>(max_slabs(w.rows, w.max_seqs)),
              static_cast<unsigned>((w.num_heads + plan.heads - 1) / plan.heads)),
         dim3(kThreads), static_cast<std::size_t>(plan.shared_bytes), w, plan);
}

}  // namespace fovea::cuda
