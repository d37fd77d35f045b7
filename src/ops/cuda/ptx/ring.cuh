#pragma once

#include <cstdint>

#include "ops/cuda/ptx/ptx.cuh"

// A ring of stages in shared memory, handed to and fro between threads that fill it and threads
// that read it, with two barriers per stage.
namespace fovea::cuda {

/// Where somebody stands in a ring.
template <int kStages>
struct Position {
  int stage = 0;
  std::uint32_t phase = 0;
  __device__ void advance() {
    if (++stage == kStages) {
      stage = 0;
      phase ^= 1;
    }
  }
};

/// Waits until the barrier has completed the phase.
__device__ inline void wait_for(std::uint64_t& barrier, std::uint32_t phase) {
  ptx::barrier_wait(ptx::shared_address(&barrier), phase);
}

/// Tells the filling side that this warp has read a stage. For a whole warp.
__device__ inline void release(std::uint64_t& barrier) {
  if (threadIdx.x % 32 == 0) ptx::barrier_arrive(ptx::shared_address(&barrier));
}

}  // namespace fovea::cuda
