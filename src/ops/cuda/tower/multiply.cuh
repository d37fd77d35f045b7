#pragma once

#include <cstdint>

#include "ops/cuda/ptx/ring.cuh"
#include "ops/cuda/ptx/wgmma.cuh"
#include "ops/cuda/tower/packet.cuh"
#include "ops/cuda/tower/shared.cuh"

// The GEMM of a tile: rows come from the mailbox into registers, in the layout in which WGMMA takes
// its left operand, and weights from the ring. Warp groups that share rows take every other 32
// summed dims. The loop over chunks of the sum stays a loop: instructions that run once per block
// come from afar, and a block takes longer the more of them there are.
namespace fovea::cuda {

template <class Sizes>
using TileSums = float[Sizes::kTileSlices][4];

/// What a warp group multiplies.
template <class Sizes>
struct GemmOperands {
  const std::byte* rows;  ///< the thread's part of the first fragment of its rows
  std::uint32_t tag;      ///< of the rows
  int chunks;             ///< of the sum, each a stage of the ring
  int group;
  CtaMemory<Sizes>& memory;
  Position<CtaMemory<Sizes>::kStages>& at;  ///< in the ring
};

/// The parts of rows that a thread multiplies, some chunks of the sum in registers or on their way
/// there.
template <class Sizes>
struct HeldRows {
  static constexpr int kSteps = Sizes::kGroupsSplitSums ? 2 : 4;  // of 16 of 64 summed dims
  static constexpr int kPackets = kSteps * Sizes::kChunkTiles;    // of a chunk
  static constexpr int kChunkBytes = Sizes::kChunk / 16 * Sizes::kSliceBytes;
  static constexpr int kCount = Sizes::kHeldChunks;
  using Chunk = Packets[kPackets];

  const std::byte* from;  ///< the next chunk that nobody has waited for
  Chunk chunk[kCount];

  /// Starts loading the chunk that is `ahead` of the next one.
  __device__ void load(int held, int ahead) {
    const std::byte* const begin = from + ahead * kChunkBytes;
#pragma unroll
    for (int i = 0; i < kPackets; ++i)
      chunk[held][i] = load_packets(begin + (i / kSteps * 4 + i % kSteps) * Sizes::kSliceBytes);
  }
  /// Starts loading the first chunk. The others need some value, or the compiler keeps what their
  /// registers hold from GEMM to GEMM.
  __device__ void start() {
    load(0, 0);
#pragma unroll
    for (int held = 1; held < kCount; ++held)
#pragma unroll
      for (Packets& packets : chunk[held]) packets = {};
  }
  /// Waits until the next chunk has arrived.
  __device__ void wait(int held, std::uint32_t tag) {
    while (true) {
      Arrivals arrivals(tag);
#pragma unroll
      for (int i = 0; i < kPackets; ++i) arrivals.expect(chunk[held][i]);
      if (arrivals.complete()) break;
      load(held, 0);
    }
    from += kChunkBytes;
  }
  /// Starts loading those behind the first one, which has told that they are on their way.
  __device__ void load_others(int chunks) {
#pragma unroll
    for (int next = 1; next < kCount; ++next)
      if (next < chunks) load(next, next - 1);
  }
};

/// Starts sums += rows times a stage of weights, `stage` being the lower word of its descriptor.
template <class Sizes>
__device__ inline void start_chunk(TileSums<Sizes>& sums, typename HeldRows<Sizes>::Chunk& rows,
                                   std::uint32_t stage) {
  using Held = HeldRows<Sizes>;
  constexpr std::uint32_t kUnit = 16;  // bytes, of descriptors
  constexpr std::uint64_t kUpper = ~std::uint64_t{0xffffffffu};
#pragma unroll
  for (Packets& p : rows) {  // in place before the WGMMAs begin
    asm volatile("" : "+r"(p.word[0]), "+r"(p.word[1]), "+r"(p.word[2]), "+r"(p.word[3])::"memory");
  }
  ptx::wgmma_fence();
#pragma unroll
  for (int i = 0; i < Held::kPackets; ++i) {
    const std::uint32_t tile = stage + i / Held::kSteps * (CtaMemory<Sizes>::kTileBytes / kUnit);
    ptx::wgmma_k_major(
        sums, rows[i].word,
        (ptx::tile_descriptor(0) & kUpper) | (tile + i % Held::kSteps * (32 / kUnit)));
  }
  ptx::wgmma_commit_group();
}

/// sums = rows times stages of the ring. For what the caller needs afterwards it calls
/// while_waiting() before the first rows have arrived, and on_way(i) while the chunks
/// i * kHeldChunks and on are multiplied.
template <class Sizes, class WhileWaiting, class OnWay>
__device__ inline void multiply_rows(TileSums<Sizes>& sums, const GemmOperands<Sizes>& of,
                                     WhileWaiting while_waiting, OnWay on_way) {
  constexpr int kHeld = HeldRows<Sizes>::kCount;
  constexpr int kStages = CtaMemory<Sizes>::kStages;
  constexpr std::uint32_t kUnit = 16;  // bytes, of descriptors
  auto& [stage, phase] = of.at;
  // Groups that split sums take every other 64 bytes of a row of weights.
  const int group_dims = Sizes::kGroupsSplitSums ? 32 * of.group : 0;
  const auto weights = static_cast<std::uint32_t>(ptx::advance_operand(
      ptx::tile_descriptor(ptx::shared_address(of.memory.ring[0])), 2 * group_dims));
  const auto release_stage_before = [&] {
    release(of.memory.empty[stage == 0 ? kStages - 1 : stage - 1]);
  };
  HeldRows<Sizes> rows{.from = of.rows + group_dims / 16 * Sizes::kSliceBytes};
  rows.start();
  while_waiting();
#pragma unroll
  for (auto& slice : sums)
#pragma unroll
    for (float& sum : slice) sum = 0;
#pragma unroll 1
  for (int first = 0; first < of.chunks; first += kHeld) {
#pragma unroll
    for (int held = 0; held < kHeld; ++held) {
      const int chunk = first + held;
      if (held > 0 && chunk >= of.chunks) break;
      rows.wait(held, of.tag);
      if (chunk == 0) rows.load_others(of.chunks);
      wait_for(of.memory.full[stage], phase);
      start_chunk<Sizes>(sums, rows.chunk[held],
                         weights + stage * (CtaMemory<Sizes>::kStageBytes / kUnit));
      if (held == 0) on_way(first / kHeld);
      if (chunk > 0) {
        ptx::wgmma_wait_group<1>();
        release_stage_before();
        if (chunk - 1 + kHeld < of.chunks) rows.load((held + kHeld - 1) % kHeld, kHeld - 2);
      }
      of.at.advance();
    }
  }
  ptx::wgmma_wait_group<0>(sums);
  release_stage_before();
}

/// Adds the sums of the other warp group of the same rows: afterwards sums[i] is slice
/// first_slice() + i, of those that the group finishes.
template <class Sizes>
__device__ inline void join_groups(TileSums<Sizes>& sums, CtaShared<Sizes>& shared, int turn,
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
