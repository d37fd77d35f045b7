#pragma once

// TMA, the unit of Hopper that copies tiles and long runs of bytes between global and shared
// memory, and clusters of CTAs that access each other's shared memory.

#include <cuda.h>

#include <cstdint>

#include "ops/cuda/common/lanes.cuh"

namespace fovea::cuda::ptx {

/// lane_index() read from the hardware by every call, so that what a kernel derives from it need
/// not stay in registers between calls.
__device__ inline int lane() {
  int lane;
  asm volatile("mov.u32 %0, %%laneid;" : "=r"(lane));
  return lane;
}

/// A value that is the same in all lanes of a warp. Makes the compiler compute it here and keep it
/// in a register; otherwise it repeats the computation, including divisions, at every use.
__device__ inline int keep(int value) {
  asm volatile("" : "+r"(value));
  return __shfl_sync(kAllLanes, value, 0);
}

/// True for one lane of a warp. All lanes of the warp must call it.
__device__ inline bool elect_lane() {
  std::uint32_t elected;
  asm volatile(
      "{.reg .pred p;\n"
      "elect.sync _|p, 0xffffffff;\n"
      "selp.u32 %0, 1, 0, p;}"
      : "=r"(elected));
  return elected != 0;
}

/// Prefetches the tensor map of a matrix, a parameter of the kernel.
__device__ inline void prefetch_map(const CUtensorMap& map) {
  asm volatile("prefetch.tensormap [%0];" ::"l"(&map) : "memory");
}
/// Copies the tile of a matrix that starts at (row, column) to shared memory in the background, and
/// counts its bytes on a barrier when they have arrived. Elements outside the matrix become zero.
__device__ inline void copy_tile(std::uint32_t shared, const CUtensorMap& map, int column, int row,
                                 std::uint32_t barrier) {
  asm volatile(
      "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], "
      "[%1, {%2, %3}], [%4];" ::"r"(shared),
      "l"(&map), "r"(column), "r"(row), "r"(barrier)
      : "memory");
}
/// As copy_tile, of an array of four dims; `at` is where the tile starts in each, innermost first.
__device__ inline void copy_tile(std::uint32_t shared, const CUtensorMap& map, int4 at,
                                 std::uint32_t barrier) {
  asm volatile(
      "cp.async.bulk.tensor.4d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], "
      "[%1, {%2, %3, %4, %5}], [%6];" ::"r"(shared),
      "l"(&map), "r"(at.x), "r"(at.y), "r"(at.z), "r"(at.w), "r"(barrier)
      : "memory");
}
/// As copy_tile, to the same place of every CTA of the cluster whose bit is set in `ctas`, and
/// counts on the barrier of each.
__device__ inline void copy_tile_multicast(std::uint32_t shared, const CUtensorMap& map, int column,
                                           int row, std::uint32_t barrier, std::uint16_t ctas) {
  asm volatile(
      "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes"
      ".multicast::cluster [%0], [%1, {%2, %3}], [%4], %5;" ::"r"(shared),
      "l"(&map), "r"(column), "r"(row), "r"(barrier), "h"(ctas)
      : "memory");
}
/// Stores a tile from shared memory to the matrix in the background; elements outside are left out.
__device__ inline void store_tile(const CUtensorMap& map, int column, int row,
                                  std::uint32_t shared) {
  asm volatile(
      "cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%0, {%1, %2}], [%3];" ::"l"(&map),
      "r"(column), "r"(row), "r"(shared)
      : "memory");
}
/// Closes a group of the calling thread's stores.
__device__ inline void commit_bulk_stores() {
  asm volatile("cp.async.bulk.commit_group;" ::: "memory");
}
/// Waits until at most kPending groups of the calling thread have yet to read shared memory.
template <int kPending>
__device__ inline void wait_bulk_stores_read() {
  asm volatile("cp.async.bulk.wait_group.read %0;" ::"n"(kPending) : "memory");
}
/// Prefetches a tile into the L2 cache in the background.
__device__ inline void prefetch_tile(const CUtensorMap& map, int column, int row) {
  asm volatile("cp.async.bulk.prefetch.tensor.2d.L2.global [%0, {%1, %2}];" ::"l"(&map),
               "r"(column), "r"(row)
               : "memory");
}

/// Address of what CTA `rank` of the cluster has at the same place of its shared memory.
__device__ inline std::uint32_t address_in_cta(std::uint32_t shared, int rank) {
  std::uint32_t address;
  asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(address) : "r"(shared), "r"(rank));
  return address;
}
/// Copies contiguous shared memory of this CTA to the shared memory of a CTA of its cluster in
/// the background, and counts the bytes on a barrier there. `to` and `barrier` are of
/// address_in_cta; all are multiples of 16.
__device__ inline void copy_to_cta(std::uint32_t to, std::uint32_t from, int bytes,
                                   std::uint32_t barrier) {
  asm volatile(
      "cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [%0], [%1], %2, "
      "[%3];" ::"r"(to),
      "r"(from), "r"(bytes), "r"(barrier)
      : "memory");
}
/// Arrives at a barrier of a CTA of the cluster; `barrier` is of address_in_cta. It orders no
/// stores of this CTA, which would cost a thousand cycles: use it only to report that data has
/// been read.
__device__ inline void barrier_arrive_in_cta(std::uint32_t barrier) {
  asm volatile("mbarrier.arrive.shared::cluster.b64 _, [%0];" ::"r"(barrier) : "memory");
}

/// Makes initialised barriers visible to TMA and, after the next barrier of the cluster, to its
/// other CTAs.
__device__ inline void fence_barriers() {
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}
/// A barrier of all threads of a cluster that have not ended. It orders no memory accesses; each
/// warp takes part as a whole.
__device__ inline void cluster_arrive() {
  asm volatile("barrier.cluster.arrive.relaxed.aligned;" ::: "memory");
}
__device__ inline void cluster_wait() {
  asm volatile("barrier.cluster.wait.aligned;" ::: "memory");
}

/// The same barrier, before which the other CTAs' stores to shared memory are visible behind it.
__device__ inline void cluster_sync() {
  asm volatile(
      "barrier.cluster.arrive.release.aligned;\n"
      "barrier.cluster.wait.acquire.aligned;" ::
          : "memory");
}

}  // namespace fovea::cuda::ptx
