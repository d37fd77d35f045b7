#pragma once

#include <cstdint>

#include "ops/cuda/common/lanes.cuh"
#include "ops/cuda/ptx/ptx.cuh"
#include "ops/cuda/ptx/tma.cuh"

// A ring of kStages stages in shared memory. One side fills stages in order, the other reads them
// in the same order; each stage has two barriers, both of which begin in phase 0:
//
//   filling side                                reading side
//   wait_for(empty[at.stage], at.phase ^ 1)     wait_for(full[at.stage], at.phase)
//   fill, arriving at full[at.stage]            read, then release(empty[at.stage])
//   at.advance()                                at.advance()
//
// The filling side does not wait in its first round: the phase before phase 0 counts as complete.
namespace fovea::cuda {

/// The stage that one side uses next, and the phase of its barriers.
template <int kStages>
struct Position {
  int stage = 0;
  std::uint32_t phase = 0;

  /// Of item `number`, counted from 0 over all that passes through the ring: for sides that do not
  /// take every item in turn.
  [[nodiscard]] __device__ static Position of(unsigned number) {
    return {static_cast<int>(number % kStages), number / kStages & 1};
  }
  __device__ void advance() {
    if (++stage == kStages) {
      stage = 0;
      phase ^= 1;
    }
  }
};

/// Waits until the barrier has completed the phase.
__device__ inline void wait_for(const std::uint64_t& barrier, std::uint32_t phase) {
  ptx::barrier_wait(ptx::shared_address(&barrier), phase);
}

/// Tells the filling side that this warp has read a stage. For a whole warp.
__device__ inline void release(std::uint64_t& barrier) {
  if (threadIdx.x % kWarp == 0) ptx::barrier_arrive(ptx::shared_address(&barrier));
}
/// The same where kSides CTAs of a cluster fill a stage, each with barriers of its own: in a lane
/// below kSides `first` is that of one of them for stage 0, of ptx::address_in_cta.
template <int kSides>
__device__ inline void release_in_cluster(std::uint32_t first, int stage) {
  if (threadIdx.x % kWarp < kSides)
    ptx::barrier_arrive_in_cta(first + static_cast<unsigned>(stage) * sizeof(std::uint64_t));
}

}  // namespace fovea::cuda
