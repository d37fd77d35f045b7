#pragma once

// out[r, n] = activation(sum_k x[r, k] weight[n, k] + bias[n]) + residual[r, n] on Hopper.
//
// A CTA computes tiles of the output, one after the other. Its last warp only starts
// copies: tiles of 128 bytes of rows of x and weight move through a ring of stages in shared
// memory. The other warps, in groups of four, multiply. Groups either share a tile, each with its
// rows, or take whole tiles in turn, so that one multiplies while the other stores. Sums stay in
// registers until they are finished and rounded. The residual of a tile comes through the ring
// behind its operands, so that it is there when the sums are.
//
// Weights never change, so the first stages of them are loaded before the kernel waits for its
// predecessor: a chain of GEMMs of few rows, whose time is that of reading weights, reads those of
// the next GEMM while the one before still runs.
//
// What limits GEMMs of few rows, next to reading weights, is the way from the L2 cache to the SMs:
// every tile needs its rows of x and its weights. Neighbouring tiles are therefore
// computed by the CTAs of a cluster, each of which loads a part of what they share for all. What
// remains is that some 60 bytes per cycle reach one SM (H100): tiles are as square as their number
// allows. GEMMs of many rows are held up there as well: if all SMs ask, the L2 cache gives some 28
// bytes per cycle to each. Tiles of 128 x 144 in pairs need 44 to keep the tensor cores busy, those
// of 192 x 192 in pairs 32, for which three groups share a tile.
//
// Kernels for one head dim store queries, keys and values where attention reads them
// (gemm/hopper/heads.cuh).
//
// Few tiles leave SMs idle: then CTAs of a cluster share the sum of a tile, send
// their parts to each other, and each adds up some rows in the order of the CTAs. Sums have a
// fixed order in every case: equal inputs give equal bits.
//
// What did not help on an H200: alternating groups that add a residual (proj of 8192 rows 37 us
// where groups that share a tile take 35.6, fc2 128 and 110); alternating tiles of 128 x 192 (3 %
// faster than 128 x 144 for a plain qkv, slower with a residual or GELU); tiles of 256 x 136 for
// 4304 columns; tiles of 128 x 144 whose sum two CTAs share. In a loop, at the power limit, the
// GEMMs of 8192 rows reach 0.89 to 0.96 of the rate of one of 8192 cubed, proj 0.83.
#include "ops/cuda/common/launch.cuh"
#include "ops/cuda/gemm/hopper/epilogue.cuh"
#include "ops/cuda/gemm/hopper/feed.cuh"
#include "ops/cuda/gemm/hopper/plan.cuh"
#include "ops/cuda/gemm/hopper/split.cuh"
#include "ops/cuda/ptx/ptx.cuh"
#include "ops/cuda/ptx/ring.cuh"
#include "ops/cuda/ptx/tma.cuh"
#include "ops/cuda/ptx/wgmma.cuh"

namespace fovea::cuda::gemm {

/// Releases the stage of a block of columns to all CTAs that produce it. `producer` is
/// address_in_cta of the first stage's barrier, in lanes below kProducers.
template <class P>
__device__ void release_stage(Shared<P>& s, unsigned block, std::uint32_t producer) {
  const int stage = P::At::of(block).stage;
  if constexpr (P::kProducers == 1) {
    release(s.empty[stage]);
  } else {
    release_in_cluster<P::kProducers>(producer, stage);
  }
}

/// Alternating groups multiply in turn. Without turns, a group that waits for a stage which the
/// other has yet to go through several times could not tell one pass from the next but one.
__device__ inline void wait_for_turn(int group) {
  ptx::named_barrier_sync(kFirstTurnBarrier + group, 2 * kGroup);
}
__device__ inline void pass_turn(int group) {
  ptx::named_barrier_arrive(kFirstTurnBarrier + (group ^ 1), 2 * kGroup);
}

/// Starts one WGMMA. With kFirst, the first ones of every chain do not read the sums.
template <class P, bool kFirst, class Sums>
__device__ void multiply_step(bool is_first_of_chain, Sums& sums, std::uint64_t a,
                              std::uint64_t b) {
  const bool starts = kFirst && is_first_of_chain;
  if constexpr (P::kFp8) {
    starts ? ptx::wgmma_init_e4m3(sums, a, b) : ptx::wgmma_e4m3(sums, a, b);
  } else {
    starts ? ptx::wgmma_init(sums, a, b) : ptx::wgmma(sums, a, b);
  }
}

/// Starts the WGMMAs of one block of columns. The first ones of a tile do not read the sums.
template <class P, bool kFirst>
__device__ void multiply_block(const Shared<P>& s, typename P::At at, int first_row,
                               typename P::Sums (&chains)[P::kChains]) {
  constexpr int kStepBytes = 32;  // of a row, that one instruction multiplies
  constexpr int kUnitBytes = kUnitRows * kRowBytes;
  wait_for(s.full[at.stage], at.phase);
  const std::uint64_t x =
      ptx::tile_descriptor(ptx::shared_address(s.x[at.stage] + first_row * kRowBytes));
  const std::uint64_t weight = ptx::tile_descriptor(ptx::shared_address(s.weight[at.stage]));
  ptx::wgmma_fence();
#pragma unroll
  for (int step = 0; step < kRowBytes / kStepBytes; ++step) {
#pragma unroll
    for (int unit = 0; unit < P::kUnits; ++unit) {
      auto& sums = chains[step % P::kChains][unit];
      const std::uint64_t a = ptx::advance_operand(x, unit * kUnitBytes + step * kStepBytes);
      const std::uint64_t b = ptx::advance_operand(weight, step * kStepBytes);
      multiply_step<P, kFirst>(step < P::kChains, sums, a, b);
    }
  }
  ptx::wgmma_commit_group();
}

/// Sums `count` blocks of columns into chains[0], the first being the `block`-th that passes
/// through the ring.
template <class P>
__device__ void multiply(Shared<P>& s, unsigned block, int count, int first_row,
                         std::uint32_t producer, typename P::Sums (&chains)[P::kChains]) {
  multiply_block<P, true>(s, P::At::of(block), first_row, chains);
  for (int b = 1; b < count; ++b) {
    ++block;
    multiply_block<P, false>(s, P::At::of(block), first_row, chains);
    ptx::wgmma_wait_group<1>();  // those of block - 1
    release_stage<P>(s, block - 1, producer);
  }
  ++block;
  if constexpr (P::kPingpong) pass_turn(static_cast<int>(threadIdx.x) / kGroup);
#pragma unroll
  for (auto& sums : chains) {
#pragma unroll
    for (auto& unit : sums) ptx::wgmma_wait_group<0>(unit);
  }
  release_stage<P>(s, block - 1, producer);
#pragma unroll
  for (int chain = 1; chain < P::kChains; ++chain) {
#pragma unroll
    for (int unit = 0; unit < P::kUnits; ++unit) {
#pragma unroll
      for (int i = 0; i < P::kCols / 2; ++i)
        chains[0][unit][i / 4][i % 4] += chains[chain][unit][i / 4][i % 4];
    }
  }
}

/// Adds the residual of a tile, whose first 64 columns are the `block`-th to pass through the ring.
template <class P>
__device__ void add_residual(Shared<P>& s, unsigned block, std::uint32_t producer,
                             typename P::Sums& sums) {
  const int row = P::first_row_of_warp() + ptx::lane() % kWarpRows;
#pragma unroll
  for (int c = 0; c < P::kResidualStages; ++c) {
    const auto at = P::At::of(block + c);
    wait_for(s.full[at.stage], at.phase);
    const std::uint32_t x = ptx::shared_address(s.x[at.stage]);
#pragma unroll
    for (int n = 0; n < kBlockCols / 8 && c * 8 + n < P::kCols / 8; ++n) {
#pragma unroll
      for (int unit = 0; unit < P::kUnits; ++unit) {
        Bf16Pair pairs[2];
        ptx::load_two_matrices(x + (row + unit * kUnitRows) * kRowBytes + (n ^ row % 8) * 16,
                               pairs);
        float(&values)[4] = sums[unit][c * 8 + n];
#pragma unroll
        for (int i = 0; i < 2; ++i) {
          const float2 added = unpack_bf16(pairs[i]);
          values[2 * i] += added.x;
          values[2 * i + 1] += added.y;
        }
      }
    }
    __syncwarp();
    release_stage<P>(s, block + c, producer);
  }
}

template <class P>
__device__ void multiply_tiles(const HopperGemmWork& w, Shared<P>& s) {
  const CtaInCluster<P> cta(w);
  const Tiles<P> tiles(w, cta);
  const SplitKSlice slice(w, cta.slice);
  const int group = static_cast<int>(threadIdx.x) / kGroup;
  constexpr int kTurns = P::kPingpong ? P::kGroups : 1;
  const int turn = P::kPingpong ? group : 0;
  const int first = tiles.first() + turn * tiles.step();
  int tile = first;
  auto block = static_cast<unsigned>(turn * slice.count);
  if (P::kPingpong && group == 1) pass_turn(group);  // group 0 begins

  std::uint32_t producer = 0;
  if constexpr (P::kProducers > 1) {
    producer = ptx::address_in_cta(
        ptx::shared_address(s.empty),
        cta.producer(min(static_cast<int>(threadIdx.x) % kWarp, P::kProducers - 1)));
  }
  std::conditional_t<P::kSplitK, SplitStore<P>, TileStore<P>> output(w, s, cta);
  const int live = live_rows_of(w);
  output.prepare(tiles.row(tile), tiles.col(tile), live);
  wait_before_matmul();
  const int num_tiles = tiles.count(live);
  for (; tile < num_tiles; tile += kTurns * tiles.step()) {
    const int col = tiles.col(tile);
    if (tile != first) output.prepare(tiles.row(tile), col, live);
    output.begin(tiles.row(tile), col, live);
    __syncwarp();
    typename P::Sums chains[P::kChains];
    typename P::Sums& sums = chains[0];
    if constexpr (P::kPingpong) wait_for_turn(group);
    multiply<P>(s, block, slice.count, P::first_row(group), producer, chains);
    block += static_cast<unsigned>(kTurns * slice.count);
    output.finish_sums(sums);
    if constexpr (P::kResidualInStages) {
      if (w.residual != nullptr) {
        add_residual<P>(s, block, producer, sums);
        block += P::kResidualStages;
      }
    }
    output.store(sums);
  }
  output.finish();
}

template <class P>
__device__ void init_barriers(const HopperGemmWork& w, Shared<P>& s) {
  constexpr int kReaders = P::kPingpong ? kGroup / kWarp : P::kConsumerWarps;
  for (int stage = 0; stage < P::kStages; ++stage) {
    ptx::barrier_init(ptx::shared_address(&s.full[stage]), 1);
    ptx::barrier_init(ptx::shared_address(&s.empty[stage]), kReaders * P::kProducers);
  }
  if constexpr (P::kSplitK) {
    const std::uint32_t parts = ptx::shared_address(&s.parts);
    ptx::barrier_init(parts, 1);
    ptx::barrier_arrive_expecting(
        parts, (w.splits - 1) * TileShare<P>(w.splits, CtaInCluster<P>(w).slice).bytes());
  }
  ptx::fence_barriers();
}

template <class P>
__global__ void __launch_bounds__(P::kThreads, P::kCtasPerSm)
    gemm_kernel(const __grid_constant__ HopperGemmWork w) {
  static_assert(sizeof(Shared<P>) * P::kCtasPerSm <= kHopperSharedBytes);
  extern __shared__ __align__(1024) std::byte memory[];
  Shared<P>& s = *reinterpret_cast<Shared<P>*>(memory);
  if (threadIdx.x == 0) {
    ptx::prefetch_map(w.weight);
    ptx::prefetch_map(w.x);
    init_barriers<P>(w, s);
  }
  __syncthreads();
  if constexpr (P::kIsCluster) {  // all CTAs must be there before one sends something to another
    ptx::cluster_arrive();
    ptx::cluster_wait();
  }
  const int warp = __shfl_sync(kAllLanes, static_cast<int>(threadIdx.x) / kWarp, 0);
  if (warp < P::kConsumerWarps) {
    if constexpr (P::kShiftsRegisters) ptx::setmaxnreg_inc<P::kConsumerRegisters>();
    multiply_tiles<P>(w, s);
  } else {
    if constexpr (P::kShiftsRegisters) ptx::setmaxnreg_dec<P::kCopyRegisters>();
    if (warp == P::kConsumerWarps) Copier<P>(w, s).run();
  }
}

/// How a kernel is launched.
template <class P>
struct GemmLaunch : LaunchConfig {
  GemmLaunch(cudaStream_t stream, int splits, int num_ctas)
      : LaunchConfig(stream, dim3(static_cast<unsigned>(num_ctas)), dim3(P::kThreads),
                     sizeof(Shared<P>)) {
    start_early();
    if constexpr (P::kIsCluster) form_clusters(splits * P::kPeers);
  }
};

template <class P>
void launch_gemm(CudaStream& stream, const HopperGemmWork& work, int num_ctas) {
  const DeviceGuard guard(stream.device_index());
  const GemmLaunch<P> launch(stream.handle(), work.splits, num_ctas);
  FOVEA_CUDA_CHECK(cudaLaunchKernelEx(launch.get(), &gemm_kernel<P>, work));
}

/// HopperGemmKernel::prepare.
template <class P>
int prepare(cudaStream_t stream, int num_sms) {
  FOVEA_CUDA_CHECK(cudaFuncSetAttribute(&gemm_kernel<P>,
                                        cudaFuncAttributeMaxDynamicSharedMemorySize,
                                        static_cast<int>(sizeof(Shared<P>))));
  int ctas_each = 0;
  FOVEA_CUDA_CHECK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&ctas_each, &gemm_kernel<P>,
                                                                 P::kThreads, sizeof(Shared<P>)));
  if constexpr (P::kPeers > 1) {
    const GemmLaunch<P> launch(stream, 1, P::kPeers);
    int clusters = 0;
    FOVEA_CUDA_CHECK(cudaOccupancyMaxActiveClusters(&clusters, &gemm_kernel<P>, launch.get()));
    return std::min(clusters, num_sms * ctas_each / P::kPeers) * P::kPeers;
  } else {
    return num_sms * ctas_each;
  }
}

template <class P>
constexpr HopperGemmKernel kernel_of(const char* name) {
  return {.name = name,
          .rows = P::kRows,
          .cols = P::kCols,
          .cluster_rows = P::kRowsOfTiles,
          .cluster_cols = P::kColsOfTiles,
          .pingpong = P::kPingpong,
          .split = P::kSplitK,
          .adds_residual = P::kAddsResidual,
          .head_dim = P::kHeadDim,
          .chunk_cols = P::kBulkStores ? P::kChunk : 0,
          .format = P::kFormat,
          .prepare = &prepare<P>,
          .launch = &launch_gemm<P>};
}

}  // namespace fovea::cuda::gemm
