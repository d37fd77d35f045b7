#pragma once

#include <cstdint>

#include "ops/cuda/ptx/tma.cuh"
#include "ops/cuda/rowwise/activation.cuh"
#include "ops/cuda/tower/constants.cuh"
#include "ops/cuda/tower/heads.cuh"
#include "ops/cuda/tower/multiply.cuh"
#include "ops/cuda/tower/owned_rows.cuh"
#include "ops/cuda/tower/role.cuh"
#include "ops/cuda/tower/statistics.cuh"

// All blocks of a tower, for up to 256 rows, in one kernel. See sizes.h for who computes what, and
// packet.cuh for how numbers travel. CTAs never wait for all others, only for the numbers
// that they multiply, while a warp fetches weights as far ahead as its ring reaches.
namespace fovea::cuda {

/// Fetches the weights of all blocks, in the order in which they are multiplied. For one thread.
template <class Sizes>
__device__ inline void fetch_weights(const BlocksWork& work, const CtaRole<Sizes>& role,
                                     CtaMemory<Sizes>& memory) {
  constexpr int kStageBytes = CtaMemory<Sizes>::kStageBytes;
  constexpr int kTileCols = Sizes::kTileCols;
  Position<CtaMemory<Sizes>::kStages> at;
#pragma unroll 1
  for (int block = 0; block < work.blocks; ++block) {
    const BlockWeights& weights = work.block[block];
#pragma unroll 1
    for (int gemm = 0; gemm < kNumBlockGemms; ++gemm) {
      if (!role.takes_part(gemm)) continue;
      const bool in_pairs = gemm == kQkv && role.part() < 2;
      const int head_row = role.head_column();
      const int row = gemm == kQkv   ? 2 * Sizes::kWidth + role.head() * Sizes::kHeadDim + head_row
                      : gemm == kFc1 ? kTileCols * role.tile()
                                     : kTileCols * role.group();
      int column = role.first_chunk(gemm) * Sizes::kChunk;
#pragma unroll 1
      for (int chunk = role.chunks(gemm); chunk > 0; --chunk) {
        wait_for(memory.empty[at.stage], at.phase ^ 1);
        const std::uint32_t full = ptx::shared_address(&memory.full[at.stage]);
        std::uint32_t to = ptx::shared_address(memory.ring[at.stage]);
        ptx::barrier_arrive_expecting(full, kStageBytes);
#pragma unroll
        for (int tile = 0; tile < Sizes::kChunkTiles; ++tile, column += 64) {
#pragma unroll
          for (int box = 0; box < kTileCols; box += kWeightRows, to += kBoxBytes) {
            if (in_pairs) {
              ptx::copy_tile(to, weights.pairs,
                             make_int4(column, 0, (head_row + box) / 2,
                                       role.part() * Sizes::kHeads + role.head()),
                             full);
            } else {
              ptx::copy_tile(to, weights.weight[gemm], column, row + box, full);
            }
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
  static constexpr int kFinished = Sizes::kFinished;
  using Sums = TileSums<Sizes>;

  const BlocksWork& work;
  CtaMemory<Sizes>& memory;
  CtaRole<Sizes> role = CtaRole<Sizes>::self();
  Consumer<Sizes> self = Consumer<Sizes>::self();

  [[nodiscard]] __device__ ColumnConstants<Sizes> constants() const { return {memory, self}; }
  [[nodiscard]] __device__ OwnedRows<Sizes> owned_rows() const {
    return {work, memory, role, self};
  }
  /// Of this thread in a fragment of rows.
  [[nodiscard]] __device__ int fragment() const {
    return (role.first_row_tile() + self.row_tile) * kFragmentBytes +
           self.lane * static_cast<int>(sizeof(Packets));
  }

  /// Sums behind a norm: rstd (sum - mean * first) + second. `norm`: of the two rows.
  __device__ void finish_norm(const float (&sums)[4], int slice, const float2 (&norm)[2],
                              float (&out)[4]) const {
    const float4 two = constants().of_slice(slice);
#pragma unroll
    for (int value = 0; value < 4; ++value) {
      const float2 row = norm[value / 2];
      out[value] = fmaf(row.y, sums[value],
                        value % 2 == 0 ? fmaf(-row.x, two.x, two.y) : fmaf(-row.x, two.z, two.w));
    }
  }
  __device__ void load_norm(int number, float2 (&norm)[2]) const {
    norm[0] = memory.shared.norm[number][self.row];
    norm[1] = memory.shared.norm[number][self.row + 8];
  }

  /// Queries and keys, rotated, or values, transposed.
  __device__ void publish_heads(const Sums& sums, int block) const {
    const BlockTags tags(block);
    const std::uint32_t tag = role.part() == 0 ? tags.rows : tags.heads;
    const CtaShared<Sizes>& shared = memory.shared;
    const int row_tile = role.first_row_tile() + self.row_tile;
    const int place = role.part() == 0   ? Sizes::kQueries
                      : role.part() == 1 ? Sizes::kKeys
                                         : Sizes::kValues;
    std::byte* const to =
        work.mail + place + (role.part() == 0 ? 0 : block % 2 * Sizes::kHeadBytes) +
        (role.head() * Sizes::kRowTiles + row_tile) * (Sizes::kHead16 * kFragmentBytes) +
        self.lane * static_cast<int>(sizeof(Packets));
    float2 norm[2];
    load_norm(0, norm);
#pragma unroll
    for (int i = 0; i < kFinished; ++i) {
      const int in_tile = self.first_slice() + i;
      const int slice = role.head_column() / 8 + in_tile;
      if (in_tile >= Sizes::kHeadSlicesOfTile || slice >= Sizes::kHeadSlices) continue;
      float y[4];
      finish_norm(sums[i], in_tile, norm, y);
      std::byte* const to_slice =
          to + slice / 2 * kFragmentBytes + slice % 2 * static_cast<int>(sizeof(Packet));
      if (role.part() < 2) {
        const int pair = 4 * slice + self.col / 2;
        const float2 upper = shared.angle[self.row][pair];
        const float2 lower = shared.angle[self.row + 8][pair];
        store_packet(
            to_slice,
            tagged_pair(y[0] * upper.x - y[1] * upper.y, y[1] * upper.x + y[0] * upper.y, tag),
            pack_bf16(y[2] * lower.x - y[3] * lower.y, y[3] * lower.x + y[2] * lower.y));
      } else {
        store_packet(to_slice, tagged(ptx::transpose(pack_bf16(y[0], y[1])), tag),
                     ptx::transpose(pack_bf16(y[2], y[3])));
      }
    }
  }

  __device__ void publish_wide(const Sums& sums, std::uint32_t tag) const {
    std::byte* const to = work.mail + Sizes::kWide + fragment();
    float2 norm[2];
    load_norm(1, norm);
#pragma unroll
    for (int i = 0; i < kFinished; ++i) {
      const int slice = self.first_slice() + i;
      if (slice >= Sizes::kTileSlices) continue;
      float y[4];
      finish_norm(sums[i], slice, norm, y);
      activate(Sizes::kActivation, y);
      store_packet(to + slice_offset<Sizes>(role.tile(), slice), tagged_pair(y[0], y[1], tag),
                   pack_bf16(y[2], y[3]));
    }
  }

  /// Attention of the CTA's queries, if it has some.
  __device__ void attend(int block) const {
    constexpr int kBlocks = Sizes::kCtasOfHead;
    if (role.number >= Sizes::kHeads * kBlocks) return;
    const int turn = role.number % kBlocks;
    const auto tiles_before = [](int i) {
      return i * (Sizes::kRowTiles / kBlocks) + min(i, Sizes::kRowTiles % kBlocks);
    };
    HeadAttention<Sizes>{.mail = work.mail,
                         .head = role.number / kBlocks,
                         .first = tiles_before(turn),
                         .tiles = tiles_before(turn + 1) - tiles_before(turn),
                         .block = block,
                         .scale = work.scale,
                         .shared = memory.shared,
                         .self = self}
        .run();
  }

  __device__ void run() {
    Position<CtaMemory<Sizes>::kStages> at;
    int turn = 0;
    owned_rows().load();
#pragma unroll 1
    for (int block = 0; block < work.blocks; ++block) {
      const std::uint32_t tag = BlockTags(block).rows;
      // One loop over the GEMMs, so that the code of the multiplication exists once.
#pragma unroll 1
      for (int gemm = 0; gemm < kNumBlockGemms; ++gemm) {
        if (!role.takes_part(gemm)) continue;
        role = CtaRole<Sizes>::self();
        self = Consumer<Sizes>::self();
        const int norm = gemm / 2;
        const bool behind_norm = gemm % 2 == 0;
        if (gemm == kProj) attend(block);
        Sums sums;
        RowStatistics<Sizes> statistics(work.mail + (norm == 0 ? Sizes::kStats1 : Sizes::kStats2) +
                                        role.row_part() * Sizes::kTileRows * Sizes::kRowStatBytes);
        const int rows_at = gemm == kQkv    ? Sizes::kX1
                            : gemm == kProj ? Sizes::kMixed
                            : gemm == kFc1  ? Sizes::kX2
                                            : Sizes::kWide;
        multiply_rows<Sizes>(
            sums,
            {.rows = work.mail + rows_at + fragment() +
                     role.first_chunk(gemm) * HeldRows<Sizes>::kChunkBytes,
             .tag = tag,
             .chunks = role.chunks(gemm),
             .group = self.group,
             .memory = memory,
             .at = at},
            [&] { constants().fetch(work.block[block], gemm, role); },
            [&](int round) {
              if (!behind_norm) return;
              if (round == 0) statistics.load();
              if (round == 1) statistics.store(tag, work.epsilon, memory.shared.norm[norm]);
            });
        constants().wait();
        join_groups<Sizes>(sums, memory.shared, turn ^= 1, self);
        if (!behind_norm) {
          owned_rows().add(sums, norm, block);
        } else if (gemm == kQkv) {
          publish_heads(sums, block);
        } else {
          publish_wide(sums, tag);
        }
      }
      if (work.tap[block] != nullptr) owned_rows().store(work.tap[block]);
    }
    owned_rows().store(work.x);
  }
};

/// Barriers, angles, sequences, and packets of the cluster with tags of no block.
template <class Sizes>
__device__ inline void prepare_memory(const BlocksWork& work, const CtaRole<Sizes>& role,
                                      CtaMemory<Sizes>& memory) {
  CtaShared<Sizes>& shared = memory.shared;
  const auto thread = static_cast<int>(threadIdx.x);
  if (thread == 0) {
#pragma unroll 1
    for (int stage = 0; stage < CtaMemory<Sizes>::kStages; ++stage) {
      ptx::barrier_init(ptx::shared_address(&memory.full[stage]), 1);
      ptx::barrier_init(ptx::shared_address(&memory.empty[stage]), kConsumerWarps);
    }
    ptx::fence_barriers();
  }
  const int rows = static_cast<int>(live_rows(work.live_rows, work.capacity));
  const int first_row = role.row_part() * Sizes::kTileRows;
  for (int i = thread; i < Sizes::kTileRows * Sizes::kPairs; i += kCtaThreads) {
    const int row = i / Sizes::kPairs;
    const int from = first_row * Sizes::kPairs + i;
    const bool rotates = work.cos != nullptr && first_row + row < rows;
    shared.angle[row][i % Sizes::kPairs] =
        rotates ? make_float2(work.cos[from], work.sin[from]) : make_float2(1, 0);
  }
  auto* const parts = reinterpret_cast<uint4*>(shared.parts);
  for (int i = thread; i < static_cast<int>(sizeof(shared.parts) / sizeof(uint4)); i += kCtaThreads)
    parts[i] = make_uint4(0, 0, 0, 0);
  if (thread < Sizes::kRows) {
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
__global__ void __launch_bounds__(kCtaThreads, 1)
    blocks_kernel(const __grid_constant__ BlocksWork work) {
  extern __shared__ __align__(1024) std::byte memory_bytes[];
  auto& memory = *reinterpret_cast<CtaMemory<Sizes>*>(memory_bytes);
  const auto role = CtaRole<Sizes>::self();
  prepare_memory(work, role, memory);
  // Also for the other CTAs of the cluster, which write packets into this one.
  ptx::cluster_sync();
  if (threadIdx.x >= kConsumers) {
    ptx::setmaxnreg_dec<24>();
    if (threadIdx.x == kConsumers) fetch_weights(work, role, memory);
  } else {
    ptx::setmaxnreg_inc<240>();
    BlockConsumer<Sizes>{work, memory}.run();
  }
}

}  // namespace fovea::cuda
