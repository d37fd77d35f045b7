#pragma once

#include <cstdint>

#include "ops/cuda/blocks/heads.cuh"
#include "ops/cuda/blocks/multiply.cuh"
#include "ops/cuda/blocks/statistics.cuh"
#include "ops/cuda/gemm/activation.cuh"
#include "ops/cuda/ptx/tma.cuh"

// All blocks of a tower, for up to 64 rows, in one kernel. See sizes.h for who computes what, and
// packet.cuh for how numbers travel. Thread blocks never wait for all others, only for the numbers
// that they multiply, while the warp that fetches weights is more than a GEMM ahead.
namespace fovea::cuda {

/// What a thread block computes of every block of the tower.
template <class Sizes>
struct BlockRole {
  int number;  ///< of the thread block
  int part;    ///< of qkv: queries, keys, values
  int head;
  int half;   ///< of the head
  int group;  ///< of columns, of proj and fc2
  int split;  ///< of their sums, and row tile of the x it owns

  __device__ static BlockRole self() {
    const auto number = static_cast<int>(blockIdx.x);
    return {.number = number,
            .part = number / (2 * Sizes::kHeads),
            .head = number % (2 * Sizes::kHeads) / 2,
            .half = number % 2,
            .group = number / kSplits,
            .split = number % kSplits};
  }
  [[nodiscard]] __device__ bool takes_part(int gemm) const {
    return number < (gemm == kQkv   ? Sizes::kQkvBlocks
                     : gemm == kFc1 ? Sizes::kMlpBlocks
                                    : Sizes::kOwners);
  }
  /// Chunks of the sum before those of split `i`, of `all`.
  [[nodiscard]] __device__ static int chunks_before(int all, int i) {
    return i * (all / kSplits) + min(i, all % kSplits);
  }
  [[nodiscard]] __device__ int first_chunk(int gemm) const {
    if (gemm == kQkv || gemm == kFc1) return 0;
    return chunks_before(gemm == kProj ? Sizes::kWidthChunks : Sizes::kMlpChunks, split);
  }
  [[nodiscard]] __device__ int chunks(int gemm) const {
    if (gemm == kQkv || gemm == kFc1) return Sizes::kWidthChunks;
    const int all = gemm == kProj ? Sizes::kWidthChunks : Sizes::kMlpChunks;
    return chunks_before(all, split + 1) - chunks_before(all, split);
  }
  /// Slices of eight columns of the group; the last one may have fewer.
  [[nodiscard]] __device__ int owned_slices() const {
    return min(kTileSlices, Sizes::kWidth / 8 - group * kTileSlices);
  }
};

/// Fetches the weights of all blocks, in the order in which they are multiplied. For one thread.
template <class Sizes>
__device__ inline void fetch_weights(const BlocksWork& work, const BlockRole<Sizes>& role,
                                     BlockMemory<Sizes>& memory) {
  constexpr int kStageBytes = BlockMemory<Sizes>::kStageBytes;
  Position<BlockMemory<Sizes>::kStages> at;
#pragma unroll 1
  for (int block = 0; block < work.blocks; ++block) {
    const BlockWeights& weights = work.block[block];
#pragma unroll 1
    for (int gemm = 0; gemm < kNumBlockGemms; ++gemm) {
      if (!role.takes_part(gemm)) continue;
      const bool in_pairs = gemm == kQkv && role.part < 2;
      const int head_row = role.half * Sizes::kHalfSlices * 8;
      const int row = gemm == kQkv   ? 2 * Sizes::kWidth + role.head * Sizes::kHeadDim + head_row
                      : gemm == kFc1 ? kTileCols * role.number
                                     : kTileCols * role.group;
      int column = role.first_chunk(gemm) * Sizes::kChunk;
#pragma unroll 1
      for (int chunk = role.chunks(gemm); chunk > 0; --chunk) {
        wait_for(memory.empty[at.stage], at.phase ^ 1);
        const std::uint32_t full = ptx::shared_address(&memory.full[at.stage]);
        const std::uint32_t stage = ptx::shared_address(memory.ring[at.stage]);
        ptx::barrier_arrive_expecting(full, kStageBytes);
#pragma unroll
        for (int tile = 0; tile < Sizes::kChunkTiles; ++tile, column += 64) {
          if (in_pairs) {
            ptx::copy_tile(
                stage + tile * kTileBytes, weights.pairs,
                make_int4(column, 0, head_row / 2, role.part * Sizes::kHeads + role.head), full);
          } else {
            ptx::copy_tile(stage + tile * kTileBytes, weights.weight[gemm], column, row, full);
          }
        }
        at.advance();
      }
    }
  }
}

/// What a consumer does with its sums.
template <class Sizes>
struct BlockConsumer {
  const BlocksWork& work;
  const BlockRole<Sizes>& role;
  BlockMemory<Sizes>& memory;
  const Consumer self;
  const bool owns;   ///< rows of x
  const int slices;  ///< of them
  float x[kFirstSlices][4] = {};
  /// Of the columns of its sums: BlockWeights::constants.
  float first[kFirstSlices][2] = {};
  float second[kFirstSlices][2] = {};

  __device__ BlockConsumer(const BlocksWork& all, const BlockRole<Sizes>& own,
                           BlockMemory<Sizes>& all_memory)
      : work(all),
        role(own),
        memory(all_memory),
        self(Consumer::self()),
        owns(own.takes_part(kProj) && self.row_tile == own.split),
        slices(min(own.owned_slices() - self.first_slice(), kFirstSlices)) {}

  [[nodiscard]] __device__ int owned_column() const {
    return kTileCols * role.group + 8 * self.first_slice() + self.col;
  }
  /// Of this thread in a fragment of rows.
  [[nodiscard]] __device__ int fragment() const {
    return self.row_tile * kFragmentBytes + self.lane * static_cast<int>(sizeof(Packets));
  }

  __device__ void load_constants(const float2* column) {
#pragma unroll
    for (int i = 0; i < kFirstSlices; ++i) {
      const float4 two = *reinterpret_cast<const float4*>(column + 8 * i);
      first[i][0] = two.x;
      second[i][0] = two.y;
      first[i][1] = two.z;
      second[i][1] = two.w;
    }
  }
  __device__ void load_constants(const BlockWeights& weights, int gemm) {
    const int column =
        gemm == kQkv ? (role.part * Sizes::kHeads + role.head) * Sizes::kHeadDim +
                           8 * (role.half * Sizes::kHalfSlices + self.first_slice()) + self.col
        : gemm == kFc1 ? kTileCols * role.number + 8 * self.first_slice() + self.col
                       : owned_column();
    load_constants(weights.constants[gemm] + column);
  }

  /// Calls visit(two neighbours of x, their offset in rows of memory) for all that the thread owns
  /// in the first `rows` rows.
  template <class X, class Visit>
  __device__ void for_owned_pairs(X& own, int rows, Visit visit) const {
    if (!owns) return;
#pragma unroll
    for (int i = 0; i < kFirstSlices; ++i) {
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const int row = self.row + 8 * half;
        if (i >= slices || row >= rows) continue;
        visit(own[i][2 * half], own[i][2 * half + 1],
              static_cast<std::int64_t>(row) * Sizes::kWidth + owned_column() + 8 * i);
      }
    }
  }
  /// Rows that nobody has sent are zeros.
  __device__ void load_x(int rows) {
    if (owns) load_constants(work.block[0].entry + owned_column());
    for_owned_pairs(x, rows, [&](float& low, float& high, std::int64_t offset) {
      const float2 two = unpack_bf16(*reinterpret_cast<const Bf16Pair*>(work.x + offset));
      low = two.x;
      high = two.y;
    });
  }
  __device__ void store_x(__nv_bfloat16* to, int rows) const {
    for_owned_pairs(x, rows, [&](float low, float high, std::int64_t offset) {
      *reinterpret_cast<Bf16Pair*>(to + offset) = pack_bf16(low, high);
    });
  }

  /// x times gamma, for the GEMM behind a norm, and statistics.
  __device__ void publish_x(int norm, std::uint32_t tag) {
    if (!owns) return;
    std::byte* const to = work.mail + (norm == 0 ? Sizes::kX1 : Sizes::kX2) + fragment();
#pragma unroll
    for (int i = 0; i < kFirstSlices; ++i) {
      if (i >= slices) continue;
      store_packet(to + slice_offset(kTileSlices * role.group + self.first_slice() + i),
                   tagged_pair(x[i][0] * second[i][0], x[i][1] * second[i][1], tag),
                   pack_bf16(x[i][2] * second[i][0], x[i][3] * second[i][1]));
    }
    RowStatistics<Sizes>::publish(work.mail + (norm == 0 ? Sizes::kStats1 : Sizes::kStats2), x,
                                  slices, role.group, tag, memory.shared.stat[norm], self);
  }

  /// Sums behind a norm: rstd (sum - mean * first) + second.
  __device__ void finish_norm(const TileSums& sums, int i, const float2 (&norm)[kBlockRows],
                              float (&out)[4]) const {
    const float2 upper = norm[self.row];
    const float2 lower = norm[self.row + 8];
#pragma unroll
    for (int value = 0; value < 4; ++value) {
      const float2 row = value < 2 ? upper : lower;
      out[value] =
          fmaf(row.y, sums[i][value], fmaf(-row.x, first[i][value % 2], second[i][value % 2]));
    }
  }

  /// Queries and keys, rotated, or values, transposed.
  __device__ void publish_heads(const TileSums& sums, std::uint32_t tag) const {
    const BlockShared<Sizes>& shared = memory.shared;
    const int head_tile = role.head * kRowTiles + self.row_tile;
    std::byte* const keys_or_queries =
        work.mail + (role.part == 0 ? Sizes::kQueries : Sizes::kKeys) +
        head_tile * Sizes::kHead16 * kFragmentBytes + self.lane * static_cast<int>(sizeof(Packets));
    std::byte* const values = work.mail + Sizes::kValues +
                              head_tile * Sizes::kHeadSlices * (kFragmentBytes / 2) +
                              self.lane * static_cast<int>(sizeof(Packet));
#pragma unroll
    for (int i = 0; i < kFirstSlices; ++i) {
      const int in_half = self.first_slice() + i;
      const int slice = role.half * Sizes::kHalfSlices + in_half;
      if (in_half >= Sizes::kHalfSlices || slice >= Sizes::kHeadSlices) continue;
      float y[4];
      finish_norm(sums, i, shared.norm[0], y);
      if (role.part < 2) {
        const int pair = 4 * slice + self.col / 2;
        const float2 upper = shared.angle[self.row][pair];
        const float2 lower = shared.angle[self.row + 8][pair];
        store_packet(
            keys_or_queries + slice / 2 * kFragmentBytes +
                slice % 2 * static_cast<int>(sizeof(Packet)),
            tagged_pair(y[0] * upper.x - y[1] * upper.y, y[1] * upper.x + y[0] * upper.y, tag),
            pack_bf16(y[2] * lower.x - y[3] * lower.y, y[3] * lower.x + y[2] * lower.y));
      } else {
        store_packet(values + slice * (kFragmentBytes / 2),
                     tagged(ptx::transpose(pack_bf16(y[0], y[1])), tag),
                     ptx::transpose(pack_bf16(y[2], y[3])));
      }
    }
  }

  __device__ void publish_wide(const TileSums& sums, std::uint32_t tag) const {
    std::byte* const to = work.mail + Sizes::kWide + fragment();
#pragma unroll
    for (int i = 0; i < kFirstSlices; ++i) {
      const int slice = self.first_slice() + i;
      if (slice >= kTileSlices) continue;
      float y[4];
      finish_norm(sums, i, memory.shared.norm[1], y);
      activate(Sizes::kActivation, y);
      store_packet(to + slice_offset(kTileSlices * role.number + slice),
                   tagged_pair(y[0], y[1], tag), pack_bf16(y[2], y[3]));
    }
  }

  /// Adds up the quarters of a sum: those of other rows go to their owners, and the owner adds all
  /// of its own to x.
  __device__ void add_to_x(const TileSums& sums, int norm, std::uint32_t tag) {
    auto& parts = memory.shared.parts[norm];
    constexpr int kSliceStep = sizeof(parts[0][0]);
    if (!owns) {
      const int owner = self.row_tile;
      const int sender = role.split - (role.split > owner ? 1 : 0);
      const std::uint32_t to = ptx::address_in_block(
          ptx::shared_address(&parts[sender][self.first_slice()][self.lane]), owner);
#pragma unroll
      for (int i = 0; i < kFirstSlices; ++i) {
        if (self.first_slice() + i >= kTileSlices) continue;
        store_packets_in_block(to + i * kSliceStep,
                               {tagged(sums[i][0], tag), __float_as_uint(sums[i][1]),
                                tagged(sums[i][2], tag), __float_as_uint(sums[i][3])});
      }
      return;
    }
    Packets received[kSplits - 1][kFirstSlices];
    const std::uint32_t from = ptx::shared_address(&parts[0][self.first_slice()][self.lane]);
    while (true) {
      Arrivals arrivals(tag);
#pragma unroll
      for (int sender = 0; sender < kSplits - 1; ++sender) {
#pragma unroll
        for (int i = 0; i < kFirstSlices; ++i) {
          Packets& packets = received[sender][i];
          if (self.first_slice() + i < kTileSlices) {
            packets = load_packets_of_block(from + (sender * kTileSlices + i) * kSliceStep);
          } else {
            packets = {tag, 0, tag, 0};
          }
        }
      }
#pragma unroll
      for (const auto& sender : received)
#pragma unroll
        for (const Packets& packets : sender) arrivals.expect(packets);
      if (arrivals.complete()) break;
    }
#pragma unroll
    for (int i = 0; i < kFirstSlices; ++i) {
#pragma unroll
      for (int value = 0; value < 4; ++value) {
        float sum = sums[i][value];
#pragma unroll
        for (const auto& sender : received) sum += __uint_as_float(sender[i].word[value]);
        x[i][value] += sum + first[i][value % 2];
      }
    }
  }

  __device__ void run() {
    Position<BlockMemory<Sizes>::kStages> at;
    int turn = 0;
    const int rows = static_cast<int>(live_rows(work.live_rows, work.capacity));
    load_x(rows);
    // The descriptor of stage 0, of which the groups take every other 64 bytes of a row.
    const auto weights = static_cast<std::uint32_t>(ptx::advance_operand(
        ptx::tile_descriptor(ptx::shared_address(memory.ring[0])), 64 * self.group));
    const std::byte* const rows_from = work.mail + fragment() + 2 * self.group * kSliceBytes;
#pragma unroll 1
    for (int block = 0; block < work.blocks; ++block) {
      const std::uint32_t tag = block % 2 == 0 ? 1 : 0;
      // One loop over the GEMMs, so that the code of the multiplication exists once.
#pragma unroll 1
      for (int gemm = 0; gemm < kNumBlockGemms; ++gemm) {
        const int norm = gemm / 2;
        const bool behind_norm = gemm % 2 == 0;
        if (behind_norm) publish_x(norm, tag);
        if (!role.takes_part(gemm)) continue;
        load_constants(work.block[block], gemm);
        if (gemm == kProj && role.number < Sizes::kAttentionBlocks) {
          attend<Sizes>(work.mail, role.number / kRowTiles, role.number % kRowTiles, work.scale,
                        tag, memory.shared, self);
        }
        TileSums sums;
        RowStatistics<Sizes> statistics(work.mail + (norm == 0 ? Sizes::kStats1 : Sizes::kStats2));
        const int rows_at = gemm == kQkv    ? Sizes::kX1
                            : gemm == kProj ? Sizes::kMixed
                            : gemm == kFc1  ? Sizes::kX2
                                            : Sizes::kWide;
        multiply_rows(
            sums, rows_from + rows_at + role.first_chunk(gemm) * (Sizes::kChunk / 16 * kSliceBytes),
            role.chunks(gemm), tag, memory, at, weights, [&] {
              if (behind_norm) statistics.load();
            });
        if (behind_norm) statistics.store(tag, work.epsilon, memory.shared.norm[norm]);
        join_groups(sums, memory.shared, turn ^= 1, self);
        if (!behind_norm) {
          add_to_x(sums, norm, tag);
        } else if (gemm == kQkv) {
          publish_heads(sums, tag);
        } else {
          publish_wide(sums, tag);
        }
      }
      if (work.tap[block] != nullptr) store_x(work.tap[block], rows);
    }
    store_x(work.x, rows);
  }
};

/// Barriers, angles, sequences, and packets of the cluster with tags of no block.
template <class Sizes>
__device__ inline void prepare_memory(const BlocksWork& work, BlockMemory<Sizes>& memory) {
  BlockShared<Sizes>& shared = memory.shared;
  const auto thread = static_cast<int>(threadIdx.x);
  if (thread == 0) {
#pragma unroll 1
    for (int stage = 0; stage < BlockMemory<Sizes>::kStages; ++stage) {
      ptx::barrier_init(ptx::shared_address(&memory.full[stage]), 1);
      ptx::barrier_init(ptx::shared_address(&memory.empty[stage]), kConsumers / kWarp);
    }
    ptx::fence_barriers();
  }
  const int rows = static_cast<int>(live_rows(work.live_rows, work.capacity));
  for (int i = thread; i < kBlockRows * Sizes::kPairs; i += kBlockThreads) {
    const bool rotates = work.cos != nullptr && i / Sizes::kPairs < rows;
    shared.angle[i / Sizes::kPairs][i % Sizes::kPairs] =
        rotates ? make_float2(work.cos[i], work.sin[i]) : make_float2(1, 0);
  }
  auto* const parts = reinterpret_cast<uint4*>(shared.parts);
  for (int i = thread; i < static_cast<int>(sizeof(shared.parts) / sizeof(uint4));
       i += kBlockThreads)
    parts[i] = make_uint4(0, 0, 0, 0);
  if (thread < kBlockRows) {
    const auto seqs = static_cast<int>(live_rows(work.live_seqs, work.max_seqs));
    int2 sequence = make_int2(0, 0);
    for (int i = 0; i < seqs; ++i) {
      const int2 candidate = make_int2(work.cu_seqlens[i], work.cu_seqlens[i + 1]);
      if (thread >= candidate.x && thread < candidate.y) sequence = candidate;
    }
    shared.sequence[thread] = sequence;
  }
}

template <class Sizes>
__global__ void __launch_bounds__(kBlockThreads, 1)
    blocks_kernel(const __grid_constant__ BlocksWork work) {
  extern __shared__ __align__(1024) std::byte memory_bytes[];
  auto& memory = *reinterpret_cast<BlockMemory<Sizes>*>(memory_bytes);
  const auto role = BlockRole<Sizes>::self();
  prepare_memory(work, memory);
  // Also for the other blocks of the cluster, which write packets into this one.
  ptx::cluster_sync();
  if (threadIdx.x >= kConsumers) {
    ptx::shrink_registers<24>();
    if (threadIdx.x == kConsumers) fetch_weights(work, role, memory);
  } else {
    ptx::grow_registers<240>();
    BlockConsumer<Sizes>(work, role, memory).run();
  }
}

}  // namespace fovea::cuda
