// Rearranges heads for the Hopper attention kernels (common/packed_heads.h has the layout), and
// rotates keys and queries if there are rotary angles.
//
// One CTA per slab: the rows of one slab, all heads or as many as fit. A warp per row copies its
// part of qkv and the angles to shared memory, all of it asynchronously; then threads store pieces
// of 16 bytes, neighbouring threads to neighbouring addresses. CTAs are numbered over the
// capacity and find their slab by scanning cu_seqlens.
//
// Traffic: 8 * rows * hidden bytes, 12 with angles, 9 to E4M3. A separate kernel for the rotation
// would add 8.
#include "ops/cuda/attention/work.h"
#include "ops/cuda/common/bf16.cuh"
#include "ops/cuda/common/lanes.cuh"
#include "ops/cuda/common/launch.cuh"
#include "ops/cuda/common/sequences.cuh"
#include "ops/cuda/ptx/ptx.cuh"
#include "ops/cuda/rowwise/quantize.cuh"
#include "ops/cuda/rowwise/rotate.cuh"

namespace fovea::cuda {

namespace {

constexpr int kWarps = 8;
constexpr int kThreads = kWarps * kWarp;
constexpr int kCtasPerSm = 6;
constexpr int kMostShared = 32 << 10;  // bytes of a CTA, so that kCtasPerSm fit an SM

/// Sizes of a CTA's work. Its part of a row in shared memory is [q] k v of its heads.
struct PackingPlan {
  int heads;      ///< of a CTA; the last one may have fewer
  int parts;      ///< 3, or 2 without q, where it stays as it is
  int row_bytes;  ///< in shared memory, padded
  int angle_row;  ///< floats of cos, or of sin, padded; 0 without angles
  int shared_bytes;
};

/// Bytes from row to row in shared memory: 16 more than a multiple of 128, so that the same piece
/// of eight rows lies in different banks.
int padded(int bytes) { return (bytes - 16 + 127) / 128 * 128 + 16; }

PackingPlan plan_packing(const AttentionWork& w, int heads) {
  const bool to_e4m3 = w.format == HeadFormat::kE4M3;
  const int parts = w.cos == nullptr && !to_e4m3 ? 2 : 3;
  const int rows = to_e4m3 ? Slabs<HeadFormat::kE4M3>::kRows : Slabs<HeadFormat::kBf16>::kRows;
  const int row_bytes = padded(parts * heads * w.head_dim * 2);
  const int angle_row = w.cos == nullptr ? 0 : padded(w.head_dim / 2 * 4) / 4;
  const int angle_bytes = 2 * angle_row * static_cast<int>(sizeof(float));
  return {heads, parts, row_bytes, angle_row, rows * (row_bytes + angle_bytes)};
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

/// Calls write(head, block, row) for every piece of one operand, of which a slab has `blocks` of
/// kRows rows; neighbouring threads take the rows of a block.
template <int kRows, class Write>
__device__ void for_each_piece(int heads, int blocks, Write write) {
  for (int i = static_cast<int>(threadIdx.x); i < heads * blocks * kRows; i += kThreads) {
    const int head = i / kRows / blocks;
    write(head, i / kRows - head * blocks, i % kRows);
  }
}

/// A slab in memory: of some heads, all rows.
struct SlabOfHeads {
  const AttentionWork& w;
  const Rows& rows;
  int first_head;
  int heads;
  int number;
  int lead;        ///< rows before those of the sequence
  int valid_rows;  ///< up to the end of the sequence
};

/// Keys: beyond the sequence those of its last row, beyond the head zeros. Values, and the 1 behind
/// them: beyond the sequence zeros.
template <bool kRotary>
__device__ void store_bf16(const SlabOfHeads& slab) {
  using Layout = Slabs<HeadFormat::kBf16>;
  const AttentionWork& w = slab.w;
  const PackingPlan& plan = slab.rows.plan;
  const int dim_blocks = w.head_dim / 8;
  const auto place = [](std::byte* to, int block, int row) {
    return reinterpret_cast<uint4*>(to + block * Layout::kBlockBytes + row * 16);
  };
  const int key_blocks = Layout::key_bytes(w.head_dim) / Layout::kBlockBytes;
  for_each_piece<Layout::kRows>(slab.heads, key_blocks, [&](int head, int block, int row) {
    const int from_row = min(row, slab.valid_rows - 1);
    *place(Layout::keys(w, slab.first_head + head, slab.number), block, row) =
        block < dim_blocks
            ? piece_of<kRotary>(w, slab.rows, from_row, plan.parts - 2, head, block * 8)
            : uint4{};
  });
  for_each_piece<Layout::kRows>(slab.heads, dim_blocks + 1, [&](int head, int block, int row) {
    uint4 piece{};
    if (row < slab.valid_rows && block == dim_blocks) piece.x = kBf16One;
    if (row < slab.valid_rows && block < dim_blocks) {
      piece = *reinterpret_cast<const uint4*>(slab.rows.at(row, plan.parts - 1, head) + block * 8);
    }
    *place(Layout::values(w, slab.first_head + head, slab.number), block, row) = piece;
  });
}

/// The same for rows on both sides of the sequence, and queries as keys, but in the order of their
/// rows.
template <bool kRotary>
__device__ void store_e4m3(const SlabOfHeads& slab) {
  using Layout = Slabs<HeadFormat::kE4M3>;
  const AttentionWork& w = slab.w;
  const int key_blocks = Layout::eight_keys_bytes(w.head_dim) / Layout::kBlockBytes;
  for_each_piece<Layout::kRows>(slab.heads, 2 * key_blocks, [&](int head, int index, int row) {
    const int part = index / key_blocks;  // queries, keys
    const int block = index - part * key_blocks;
    const int from_row = min(max(row, slab.lead), slab.valid_rows - 1);
    const auto eight_dims = [&](int dim) {
      return dim < w.head_dim
                 ? eight_e4m3(piece_of<kRotary>(w, slab.rows, from_row, part, head, dim))
                 : uint2{};
    };
    const uint2 low = eight_dims(block * Layout::kBlockDims);
    const uint2 high = eight_dims(block * Layout::kBlockDims + 8);
    const int number = slab.first_head + head;
    std::byte* const to =
        part == 0 ? Layout::queries(w, number, slab.number) : Layout::keys(w, number, slab.number);
    const int place = part == 0 ? row : Layout::row_of_key(row);
    *reinterpret_cast<uint4*>(to + Layout::key_offset(w.head_dim, block, place)) = {low.x, low.y,
                                                                                    high.x, high.y};
  });
  static_assert(Layout::kRows == 16, "a column of a slab");
  for_each_piece<8>(slab.heads, w.head_dim / 8 + 1, [&](int head, int block, int i) {
    const int dim = block * 8 + i;
    std::byte* const to = Layout::values(w, slab.first_head + head, slab.number);
    *reinterpret_cast<uint4*>(to + dim * Layout::kRows) = sixteen_e4m3([&](int row) {
      if (row < slab.lead || row >= slab.valid_rows || dim > w.head_dim) return 0.0f;
      return dim == w.head_dim ? 1.0f : __bfloat162float(slab.rows.at(row, 2, head)[dim]);
    });
  });
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

template <HeadFormat kFormat, bool kRotary>
__global__ void __launch_bounds__(kThreads, kCtasPerSm)
    attention_packing_kernel(AttentionWork w, PackingPlan plan) {
  using Layout = Slabs<kFormat>;
  extern __shared__ __align__(16) std::byte memory[];
  let_successor_start();
  int index = static_cast<int>(blockIdx.x);
  QueryTile tile;
  const bool found =
      find_tile<Layout::kE4M3>(w.cu_seqlens, live_sequences(w), Layout::kRows, index, tile);
  wait_for_predecessor();
  if (!found) return;
  const int first_head = static_cast<int>(blockIdx.y) * plan.heads;
  const int heads = min(plan.heads, w.num_heads - first_head);
  const int part_bytes = heads * w.head_dim * 2;
  const int valid_rows = min(tile.sequence_rows - tile.first, Layout::kRows);
  const std::int64_t first_row = tile.sequence_begin + tile.first;
  float* const cos = reinterpret_cast<float*>(memory + Layout::kRows * plan.row_bytes);
  float* const sin = cos + Layout::kRows * plan.angle_row;
  const int warp = static_cast<int>(threadIdx.x) / kWarp;
  const int lead = max(-tile.first, 0);
  for (int row = lead + warp; row < valid_rows; row += kWarps)
    fetch_row(w, plan, row, first_row + row, first_head, part_bytes, memory, cos, sin);
  ptx::commit_copies();
  ptx::wait_copies<0>();
  __syncthreads();

  const Rows rows{memory, cos, sin, plan, part_bytes, w.head_dim};
  const SlabOfHeads slab{.w = w,
                         .rows = rows,
                         .first_head = first_head,
                         .heads = heads,
                         .number = Layout::first(tile.sequence, tile.sequence_begin) +
                                   (tile.first + Layout::lead(tile.sequence_begin)) / Layout::kRows,
                         .lead = lead,
                         .valid_rows = valid_rows};
  if constexpr (kFormat == HeadFormat::kE4M3) {
    store_e4m3<kRotary>(slab);
  } else {
    store_bf16<kRotary>(slab);
    if constexpr (kRotary) {  // queries, where they were
      const int dim_blocks = w.head_dim / 8;
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
}

/// The kernel for a format, for the angles that there are.
template <HeadFormat kFormat>
auto packing_kernel(bool rotates) {
  return rotates ? &attention_packing_kernel<kFormat, true>
                 : &attention_packing_kernel<kFormat, false>;
}

}  // namespace

void launch_attention_packing(CudaStream& stream, const AttentionWork& w) {
  const PackingPlan plan = plan_packing(w);
  const bool to_e4m3 = w.format == HeadFormat::kE4M3;
  const bool rotates = w.cos != nullptr;
  const auto kernel = to_e4m3 ? packing_kernel<HeadFormat::kE4M3>(rotates)
                              : packing_kernel<HeadFormat::kBf16>(rotates);
  const int most_slabs =
      to_e4m3 ? Slabs<HeadFormat::kE4M3>::most(w) : Slabs<HeadFormat::kBf16>::most(w);
  launch(stream, kernel,
         dim3(static_cast<unsigned>(most_slabs),
              static_cast<unsigned>((w.num_heads + plan.heads - 1) / plan.heads)),
         dim3(kThreads), static_cast<std::size_t>(plan.shared_bytes), w, plan);
}

}  // namespace fovea::cuda
