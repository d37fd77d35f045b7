#pragma once

#include <cstdint>

#include "ops/cuda/blocks/constants.cuh"
#include "ops/cuda/blocks/heads.cuh"
#include "ops/cuda/blocks/multiply.cuh"
#include "ops/cuda/blocks/role.cuh"
#include "ops/cuda/blocks/statistics.cuh"
#include "ops/cuda/gemm/activation.cuh"
#include "ops/cuda/ptx/tma.cuh"

// All blocks of a tower, for up to 256 rows, in one kernel. See sizes.h for who computes what, and
// packet.cuh for how numbers travel. Thread blocks never wait for all others, only for the numbers
// that they multiply, while a warp fetches weights as far ahead as its ring reaches.
namespace fovea::cuda {

/// Fetches the weights of all blocks, in the order in which they are multiplied. For one thread.
template <class Sizes>
__device__ inline void fetch_weights(const BlocksWork& work, const BlockRole<Sizes>& role,
                                     BlockMemory<Sizes>& memory) {
  constexpr int kStageBytes = BlockMemory<Sizes>::kStageBytes;
  constexpr int kTileCols = Sizes::kTileCols;
  Position<BlockMemory<Sizes>::kStages> at;
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
  BlockMemory<Sizes>& memory;
  BlockRole<Sizes> role = BlockRole<Sizes>::self();
  Consumer<Sizes> self = Consumer<Sizes>::self();

  // The rows of x that the thread block owns are spread over all warps: each has some slices of one
  // of their tiles.
  static constexpr int kOwnersOfTile = kConsumerWarps / Sizes::kOwnedRowTiles;
  static constexpr int kOwnedSlices = (Sizes::kTileSlices + kOwnersOfTile - 1) / kOwnersOfTile;

  [[nodiscard]] __device__ int owned_tile() const { return self.warp / kOwnersOfTile; }
  /// Of the group's columns. The last one may not exist: see BlockRole::owned_slices().
  [[nodiscard]] __device__ int owned_slice(int i) const {
    return self.warp % kOwnersOfTile + i * kOwnersOfTile;
  }
  /// Of all row tiles.
  [[nodiscard]] __device__ int owned_row_tile() const {
    return role.first_row_tile() + role.split() * Sizes::kOwnedRowTiles + owned_tile();
  }
  /// Of this thread in a fragment of rows.
  [[nodiscard]] __device__ int fragment() const {
    return (role.first_row_tile() + self.row_tile) * kFragmentBytes +
           self.lane * static_cast<int>(sizeof(Packets));
  }

  [[nodiscard]] __device__ ColumnConstants<Sizes> constants() const { return {memory, self}; }
  /// Two neighbours in each of two rows.
  [[nodiscard]] __device__ float4& x(int slice) const {
    return memory.shared.x[owned_tile()][slice][self.lane];
  }
  /// Calls visit(x of a slice, 0 or 1, offset in rows of memory) for all that the thread owns in
  /// live rows: two neighbours each.
  template <class Visit>
  __device__ void for_owned_pairs(Visit visit) const {
    const auto rows = static_cast<int>(live_rows(work.live_rows, work.capacity));
    for (int i = 0; i < kOwnedSlices; ++i) {
      const int slice = owned_slice(i);
      const int column = Sizes::kTileCols * role.group() + 8 * slice + self.col;
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const int row = 16 * owned_row_tile() + self.lane / 4 + 8 * half;
        if (slice < role.owned_slices() && row < rows)
          visit(x(slice), half, static_cast<std::int64_t>(row) * Sizes::kWidth + column);
      }
    }
  }
  /// Loads and publishes x. Rows that nobody has sent are zeros.
  __device__ void load_x() {
    constants().fetch(work.block[0].entry + Sizes::kTileCols * role.group());
    for (int i = 0; i < kOwnedSlices; ++i)
      if (owned_slice(i) < Sizes::kTileSlices) x(owned_slice(i)) = make_float4(0, 0, 0, 0);
    for_owned_pairs([&](float4& own, int half, std::int64_t offset) {
      const float2 two = unpack_bf16(*reinterpret_cast<const Bf16Pair*>(work.x + offset));
      reinterpret_cast<float2*>(&own)[half] = two;
    });
    constants().wait();
    Publisher publisher{*this, 0, BlockTags(0).rows};
    for (int i = 0; i < kOwnedSlices; ++i)
      if (const int slice = owned_slice(i); slice < role.owned_slices())
        publisher.slice(slice, x(slice), constants().of_slice(slice));
    publisher.statistics();
  }
  __device__ void store_x(__nv_bfloat16* to) const {
    for_owned_pairs([&](const float4& own, int half, std::int64_t offset) {
      const float2 two = reinterpret_cast<const float2*>(&own)[half];
      *reinterpret_cast<Bf16Pair*>(to + offset) = pack_bf16(two.x, two.y);
    });
  }

  /// Publishes x, slice by slice, times gamma, for the GEMM behind a norm.
  struct Publisher {
    const BlockConsumer& of;
    int norm;
    std::uint32_t tag;
    float sum[2] = {};
    float squares[2] = {};

    /// `constants`: of the GEMM before, or of the entry.
    __device__ void slice(int number, const float4& own, const float4& constants) {
      std::byte* const to = of.work.mail + (norm == 0 ? Sizes::kX1 : Sizes::kX2) +
                            of.owned_row_tile() * kFragmentBytes +
                            of.self.lane * static_cast<int>(sizeof(Packets));
      store_packet(to + slice_offset<Sizes>(of.role.group(), number),
                   tagged_pair(own.x * constants.y, own.y * constants.w, tag),
                   pack_bf16(own.z * constants.y, own.w * constants.w));
      sum[0] += own.x + own.y;
      sum[1] += own.z + own.w;
      squares[0] += own.x * own.x + own.y * own.y;
      squares[1] += own.z * own.z + own.w * own.w;
    }
    /// For all warps of a row tile.
    __device__ void statistics() {
      auto& parts = of.memory.shared.stat[norm];
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        sum[half] = quad_sum(sum[half]);
        squares[half] = quad_sum(squares[half]);
        if (of.self.lane % 4 == 0)
          parts[of.self.warp][of.self.lane / 4 + 8 * half] = make_float2(sum[half], squares[half]);
      }
      ptx::named_barrier_sync(kOwnerBarrier + of.owned_tile(), kOwnersOfTile * kWarp);
      if (of.self.warp % kOwnersOfTile != 0 || of.self.lane >= 16) return;
      float2 all = {};
#pragma unroll
      for (int warp = 0; warp < kOwnersOfTile; ++warp) {
        const float2 part = parts[of.self.warp + warp][of.self.lane];
        all.x += part.x;
        all.y += part.y;
      }
      store_packet(of.work.mail + (norm == 0 ? Sizes::kStats1 : Sizes::kStats2) +
                       (16 * of.owned_row_tile() + of.self.lane) * Sizes::kRowStatBytes +
                       of.role.group() * static_cast<int>(sizeof(Packet)),
                   tagged(all.x, tag), __float_as_uint(all.y));
    }
  };

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
    const BlockShared<Sizes>& shared = memory.shared;
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

  /// Sends quarters of sums to the owners of their rows, adds up those of its own rows, and
  /// publishes x for the next norm.
  __device__ void add_to_x(const Sums& sums, int norm, int block) {
    // Both GEMMs of a block use the same place: whoever has sums of fc2 has got x behind proj.
    const std::uint32_t tag = norm == 0 ? 1 : 0;
    auto& parts = memory.shared.parts;
    const auto& to = parts[role.split()][self.row_tile % Sizes::kOwnedRowTiles];
    const std::uint32_t to_owner =
        ptx::address_in_block(ptx::shared_address(&to[self.first_slice()][self.lane]),
                              self.row_tile / Sizes::kOwnedRowTiles);
#pragma unroll
    for (int i = 0; i < kFinished; ++i) {
      // Nobody waits for others, and then the thread block that they go to may have ended.
      if (self.first_slice() + i >= role.owned_slices()) continue;
      store_packets_in_block(to_owner + i * static_cast<int>(sizeof(to[0])),
                             {tagged(sums[i][0], tag), __float_as_uint(sums[i][1]),
                              tagged(sums[i][2], tag), __float_as_uint(sums[i][3])});
    }

    Publisher publisher{*this, 1 - norm, BlockTags(block + norm).rows};
#pragma unroll
    for (int i = 0; i < kOwnedSlices; ++i) {
      const int slice = owned_slice(i);
      if (slice >= role.owned_slices()) continue;
      const std::uint32_t from = ptx::shared_address(&parts[0][owned_tile()][slice][self.lane]);
      Packets received[kSplits];
      while (true) {
        Arrivals arrivals(tag);
#pragma unroll
        for (int sender = 0; sender < kSplits; ++sender) {
          received[sender] =
              load_packets_of_block(from + sender * static_cast<int>(sizeof(parts[0])));
          arrivals.expect(received[sender]);
        }
        if (arrivals.complete()) break;
      }
      const float4 two = constants().of_slice(slice);
      float added[4] = {two.x, two.z, two.x, two.z};
#pragma unroll
      for (const Packets& part : received)
#pragma unroll
        for (int value = 0; value < 4; ++value) added[value] += __uint_as_float(part.word[value]);
      float4& own = x(slice);
      own = make_float4(own.x + added[0], own.y + added[1], own.z + added[2], own.w + added[3]);
      publisher.slice(slice, own, two);
    }
    publisher.statistics();
  }

  /// Attention of the thread block's queries, if it has some.
  __device__ void attend(int block) const {
    constexpr int kBlocks = Sizes::kBlocksOfHead;
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
    Position<BlockMemory<Sizes>::kStages> at;
    int turn = 0;
    load_x();
#pragma unroll 1
    for (int block = 0; block < work.blocks; ++block) {
      const std::uint32_t tag = BlockTags(block).rows;
      // One loop over the GEMMs, so that the code of the multiplication exists once.
#pragma unroll 1
      for (int gemm = 0; gemm < kNumBlockGemms; ++gemm) {
        if (!role.takes_part(gemm)) continue;
        role = BlockRole<Sizes>::self();
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
            work.mail + rows_at + fragment() +
                role.first_chunk(gemm) * (Sizes::kChunk / 16 * Sizes::kSliceBytes),
            role.chunks(gemm), tag, memory, at, self.group,
            [&] { constants().fetch(work.block[block], gemm, role); },
            [&](int round) {
              if (!behind_norm) return;
              if (round == 0) statistics.load();
              if (round == 1) statistics.store(tag, work.epsilon, memory.shared.norm[norm]);
            });
        constants().wait();
        join_groups<Sizes>(sums, memory.shared, turn ^= 1, self);
        if (!behind_norm) {
          add_to_x(sums, norm, block);
        } else if (gemm == kQkv) {
          publish_heads(sums, block);
        } else {
          publish_wide(sums, tag);
        }
      }
      if (work.tap[block] != nullptr) store_x(work.tap[block]);
    }
    store_x(work.x);
  }
};

/// Barriers, angles, sequences, and packets of the cluster with tags of no block.
template <class Sizes>
__device__ inline void prepare_memory(const BlocksWork& work, const BlockRole<Sizes>& role,
                                      BlockMemory<Sizes>& memory) {
  BlockShared<Sizes>& shared = memory.shared;
  const auto thread = static_cast<int>(threadIdx.x);
  if (thread == 0) {
#pragma unroll 1
    for (int stage = 0; stage < BlockMemory<Sizes>::kStages; ++stage) {
      ptx::barrier_init(ptx::shared_address(&memory.full[stage]), 1);
      ptx::barrier_init(ptx::shared_address(&memory.empty[stage]), kConsumerWarps);
    }
    ptx::fence_barriers();
  }
  const int rows = static_cast<int>(live_rows(work.live_rows, work.capacity));
  const int first_row = role.row_part() * Sizes::kTileRows;
  for (int i = thread; i < Sizes::kTileRows * Sizes::kPairs; i += kBlockThreads) {
    const int row = i / Sizes::kPairs;
    const int from = first_row * Sizes::kPairs + i;
    const bool rotates = work.cos != nullptr && first_row + row < rows;
    shared.angle[row][i % Sizes::kPairs] =
        rotates ? make_float2(work.cos[from], work.sin[from]) : make_float2(1, 0);
  }
  auto* const parts = reinterpret_cast<uint4*>(shared.parts);
  for (int i = thread; i < static_cast<int>(sizeof(shared.parts) / sizeof(uint4));
       i += kBlockThreads)
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
__global__ void __launch_bounds__(kBlockThreads, 1)
    blocks_kernel(const __grid_constant__ BlocksWork work) {
  extern __shared__ __align__(1024) std::byte memory_bytes[];
  auto& memory = *reinterpret_cast<BlockMemory<Sizes>*>(memory_bytes);
  const auto role = BlockRole<Sizes>::self();
  prepare_memory(work, role, memory);
  // Also for the other blocks of the cluster, which write packets into this one.
  ptx::cluster_sync();
  if (threadIdx.x >= kConsumers) {
    ptx::shrink_registers<24>();
    if (threadIdx.x == kConsumers) fetch_weights(work, role, memory);
  } else {
    ptx::grow_registers<240>();
    BlockConsumer<Sizes>{work, memory}.run();
  }
}

}  // namespace fovea::cuda
