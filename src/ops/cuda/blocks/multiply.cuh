#pragma once

#include <cstdint>

#include "ops/cuda/blocks/packet.cuh"
#include "ops/cuda/blocks/shared.cuh"
#include "ops/cuda/ptx/ring.cuh"
#include "ops/cuda/ptx/wgmma.cuh"

// The GEMM of a tile: rows come from the mailbox into registers, in the layout in which WGMMA takes
// its left operand, and weights from the ring. Warp groups that share rows take every other 32
// summed dims. The loop over chunks of the sum stays a loop: instructions that run once per block
// come from afar, and a block takes longer the more of them there are.
namespace fovea::cuda {

template <class Sizes>
using TileSums = float[Sizes::kTileSlices][4];

/// sums = rows times `chunks` stages of the ring. `from`: the thread's part of the first fragment
/// of its rows. For what the caller needs afterwards it calls while_waiting() before the first rows
/// have arrived, and on_way(i) while the chunks i * kHeldChunks and on are multiplied.
template <class Sizes, class WhileWaiting, class OnWay>
__device__ inline void multiply_rows(TileSums<Sizes>& sums, const std::byte* from, int chunks,
                                     std::uint32_t tag, BlockMemory<Sizes>& memory,
                                     Position<BlockMemory<Sizes>::kStages>& at, int group,
                                     WhileWaiting while_waiting, OnWay on_way) {
  constexpr int kSteps = Sizes::kGroupsSplitSums ? 2 : 4;  // of 16 of 64 summed dims
  constexpr int kPackets = kSteps * Sizes::kChunkTiles;    // of a chunk, in each thread
  constexpr int kHeld = Sizes::kHeldChunks;
  constexpr int kStep = Sizes::kChunk / 16 * Sizes::kSliceBytes;
  constexpr int kStages = BlockMemory<Sizes>::kStages;
  constexpr std::uint32_t kUnit = 16;  // bytes, of descriptors
  // Groups that split sums take every other 64 bytes of a row of weights.
  const int group_dims = Sizes::kGroupsSplitSums ? 32 * group : 0;
  from += group_dims / 16 * Sizes::kSliceBytes;
  const auto weights = static_cast<std::uint32_t>(ptx::advance_operand(
      ptx::tile_descriptor(ptx::shared_address(memory.ring[0])), 2 * group_dims));
  Packets rows[kHeld][kPackets];
  const auto load = [](Packets(&to)[kPackets], const std::byte* chunk) {
#pragma unroll
    for (int i = 0; i < kPackets; ++i)
      to[i] = load_packets(chunk + (i / kSteps * 4 + i % kSteps) * Sizes::kSliceBytes);
  };
  const auto release_stage_before = [&] {
    release(memory.empty[at.stage == 0 ? kStages - 1 : at.stage - 1]);
  };
  load(rows[0], from);
  // The others need some value, or the compiler keeps what their registers hold from GEMM to GEMM.
#pragma unroll
  for (int held = 1; held < kHeld; ++held)
#pragma unroll
    for (Packets& p : rows[held]) p = {};
  while_waiting();
#pragma unroll
  for (auto& slice : sums)
#pragma unroll
    for (float& sum : slice) sum = 0;
#pragma unroll 1
  for (int first = 0; first < chunks; first += kHeld) {
#pragma unroll
    for (int held = 0; held < kHeld; ++held) {
      const int chunk = first + held;
      if (held > 0 && chunk >= chunks) break;
      while (true) {
        Arrivals arrivals(tag);
#pragma unroll
        for (int i = 0; i < kPackets; ++i) arrivals.expect(rows[held][i]);
        if (arrivals.complete()) break;
        load(rows[held], from);
      }
      from += kStep;
      // The rows of the first chunk tell that the others are on their way.
      if (chunk == 0) {
#pragma unroll
        for (int next = 1; next < kHeld; ++next)
          if (next < chunks) load(rows[next], from + (next - 1) * kStep);
      }
      wait_for(memory.full[at.stage], at.phase);
      const std::uint32_t stage = weights + at.stage * (BlockMemory<Sizes>::kStageBytes / kUnit);
#pragma unroll
      for (Packets& p : rows[held]) {  // in place before the WGMMAs begin
        asm volatile(""
                     : "+r"(p.word[0]), "+r"(p.word[1]), "+r"(p.word[2]),
                       "+r"(p.word[3])::"memory");
      }
      ptx::products_begin();
#pragma unroll
      for (int i = 0; i < kPackets; ++i) {
        constexpr std::uint64_t kUpper = ~std::uint64_t{0xffffffffu};
        ptx::product_add_rows(sums, rows[held][i].word,
                              (ptx::tile_descriptor(0) & kUpper) |
                                  (stage + i / kSteps * (BlockMemory<Sizes>::kTileBytes / kUnit) +
                                   i % kSteps * (32 / kUnit)));
      }
      ptx::products_commit();
      if (held == 0) on_way(first / kHeld);
      if (chunk > 0) {
        ptx::products_wait<1>();
        release_stage_before();
        if (chunk - 1 + kHeld < chunks)
          load(rows[(held + kHeld - 1) % kHeld], from + (kHeld - 2) * kStep);
      }
      at.advance();
    }
  }
  ptx::products_wait<0>(sums);
  release_stage_before();
}

/// Adds the sums of the other warp group of the same rows: afterwards sums[i] is slice
/// first_slice() + i, of those that the group finishes.
template <class Sizes>
__device__ inline void join_groups(TileSums<Sizes>& sums, BlockShared<Sizes>& shared, int turn,
                                   const Consumer<Sizes>& self) {
  if constexpr (Sizes::kGroupsSplitSums) {
    constexpr int kSlices = Sizes::kTileSlices;
    constexpr int kFirst = Sizes::kFinished;
    auto& exchange = shared.exchange.sums[turn];
    const bool is_first = self.group == 0;
#pragma unroll
    for (int i = 0; i < kSlices; ++i) {
      if ((i < kFirst) == is_first) continue;
      exchange[i][self.row_tile][self.lane] =
          make_float4(sums[i][0], sums[i][1], sums[i][2], sums[i][3]);
    }
    ptx::named_barrier_sync(kConsumerBarrier, kConsumers);
#pragma unroll
    for (int i = 0; i < kFirst; ++i) {
      const int other = is_first ? i : i + kFirst;
      if (other >= kSlices) continue;
      const float4 sum = exchange[other][self.row_tile][self.lane];
      const auto own = [&](int value) {
        return is_first ? sums[i][value] : sums[i + kFirst < kSlices ? i + kFirst : i][value];
      };
      sums[i][0] = own(0) + sum.x;
      sums[i][1] = own(1) + sum.y;
      sums[i][2] = own(2) + sum.z;
      sums[i][3] = own(3) + sum.w;
    }
  }
}

}  // namespace fovea::cuda
