#pragma once

#include <cstdint>

#include "ops/cuda/blocks/packet.cuh"
#include "ops/cuda/blocks/shared.cuh"
#include "ops/cuda/ptx/ring.cuh"
#include "ops/cuda/ptx/wgmma.cuh"

// The GEMM of a tile: rows come from the mailbox into registers, in the layout in which WGMMA takes
// its left operand, and weights from the ring. The warp groups take every other 32 summed dims. The
// loop over chunks of the sum stays a loop: instructions that run once per block come from afar,
// and a block takes longer the more of them there are.
namespace fovea::cuda {

using TileSums = float[kTileSlices][4];

/// sums = rows times `chunks` stages of the ring. `from` is the thread's first packets, `weights`
/// the descriptor of its group's part of stage 0, lower half. Calls between() once on the way, when
/// there are several chunks, to start loads that the caller needs afterwards.
template <class Sizes, class Between>
__device__ inline void multiply_rows(TileSums& sums, const std::byte* from, int chunks,
                                     std::uint32_t tag, BlockMemory<Sizes>& memory,
                                     Position<BlockMemory<Sizes>::kStages>& at,
                                     std::uint32_t weights, Between between) {
  constexpr int kPackets = 2 * Sizes::kChunkTiles;  // of a chunk, in each thread
  constexpr int kHeld = kPackets <= 6 ? 3 : 2;      // chunks in registers: as many as fit
  constexpr int kStep = Sizes::kChunk / 16 * kSliceBytes;
  constexpr int kStages = BlockMemory<Sizes>::kStages;
  constexpr std::uint32_t kUnit = 16;  // bytes, of descriptors
  Packets rows[kHeld][kPackets];
  const auto load = [](Packets(&to)[kPackets], const std::byte* chunk) {
#pragma unroll
    for (int i = 0; i < kPackets; ++i)
      to[i] = load_packets(chunk + (i / 2 * 4 + i % 2) * kSliceBytes);
  };
  const auto release_stage_before = [&] {
    release(memory.empty[at.stage == 0 ? kStages - 1 : at.stage - 1]);
  };
  load(rows[0], from);
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
                                  (stage + i / 2 * (kTileBytes / kUnit) + i % 2 * (32 / kUnit)));
      }
      ptx::products_commit();
      if (chunk == 1) between();
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

/// Adds the sums of the other warp group: afterwards sums[i] is slice first_slice() + i, of those
/// that the group finishes.
template <class Sizes>
__device__ inline void join_groups(TileSums& sums, BlockShared<Sizes>& shared, int turn,
                                   const Consumer& self) {
  auto& exchange = shared.exchange[turn];
  const bool is_first = self.group == 0;
#pragma unroll
  for (int i = 0; i < kTileSlices; ++i) {
    if ((i < kFirstSlices) == is_first) continue;
    exchange[i][self.row_tile][self.lane] =
        make_float4(sums[i][0], sums[i][1], sums[i][2], sums[i][3]);
  }
  ptx::named_barrier_sync(kConsumerBarrier, kConsumers);
#pragma unroll
  for (int i = 0; i < kFirstSlices; ++i) {
    const int other = is_first ? i : i + kFirstSlices;
    if (other >= kTileSlices) continue;
    const float4 sum = exchange[other][self.row_tile][self.lane];
    const auto own = [&](int value) {
      return is_first ? sums[i][value]
                      : sums[i + kFirstSlices < kTileSlices ? i + kFirstSlices : i][value];
    };
    sums[i][0] = own(0) + sum.x;
    sums[i][1] = own(1) + sum.y;
    sums[i][2] = own(2) + sum.z;
    sums[i][3] = own(3) + sum.w;
  }
}

}  // namespace fovea::cuda
