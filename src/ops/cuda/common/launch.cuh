#pragma once

#include <algorithm>
#include <cstdint>

#include "device/cuda/cuda_stream.h"
#include "ops/context.h"
#include "ops/cuda/common/alignment.h"

namespace fovea::cuda {

/// Waits, at the head of every kernel of this backend, until the work it follows has finished: the
/// kernels are launched early (launch below), so that starting up overlaps with the predecessors.
/// The kernel after this one may start up at once, too: a product behind a small kernel brings its
/// weights while the product before still runs. Because every kernel waits, the end of one is the
/// end of all before it.
__device__ inline void wait_for_predecessor() {
  cudaTriggerProgrammaticLaunchCompletion();
  cudaGridDependencySynchronize();
}
/// As wait_for_predecessor, for products: the kernel after this one starts up only when this one
/// works, so that no more than one product stands in line.
__device__ inline void wait_before_product() {
  cudaGridDependencySynchronize();
  cudaTriggerProgrammaticLaunchCompletion();
}

/// Rows that are real: the count on the device, or the capacity where there is none.
__device__ inline std::int64_t live_rows(const std::int32_t* count, std::int64_t capacity) {
  if (count == nullptr) return capacity;
  const std::int64_t live = *count;
  return live < capacity ? live : capacity;
}

/// Shared memory that a block may have at most, in bytes; without asking it gets 48 KB.
inline constexpr std::size_t kMostSharedBytes = 227 << 10;

/// Launches `kernel(args...)` on `stream` with programmatic dependent launch: its blocks may become
/// resident before the predecessor ends, and wait in wait_for_predecessor.
template <class... Parameters, class... Arguments>
void launch(CudaStream& stream, void (*kernel)(Parameters...), dim3 grid, dim3 block,
            std::size_t shared_bytes, Arguments... arguments) {
  const DeviceGuard guard(stream.device_index());
  constexpr std::size_t kFreeSharedBytes = 48 << 10;
  // The same value from every thread: the limit is a property of the kernel, not of this launch.
  if (shared_bytes > kFreeSharedBytes) {
    FOVEA_CUDA_CHECK(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                          static_cast<int>(kMostSharedBytes)));
  }
  cudaLaunchAttribute early{};
  early.id = cudaLaunchAttributeProgrammaticStreamSerialization;
  early.val.programmaticStreamSerializationAllowed = 1;
  cudaLaunchConfig_t config{};
  config.gridDim = grid;
  config.blockDim = block;
  config.dynamicSmemBytes = shared_bytes;
  config.stream = stream.handle();
  config.attrs = &early;
  config.numAttrs = 1;
  FOVEA_CUDA_CHECK(cudaLaunchKernelEx(&config, kernel, static_cast<Parameters>(arguments)...));
}

/// Blocks for `tasks` independent pieces of work with `tasks_per_block` each, bounded so that a
/// kernel with a grid-stride loop does not start blocks that find nothing to do.
inline dim3 grid_for(std::int64_t tasks, std::int64_t tasks_per_block, int num_multiprocessors) {
  constexpr std::int64_t kBlocksPerMultiprocessor = 16;  // 128 to 256 threads each fill it
  const std::int64_t blocks = (tasks + tasks_per_block - 1) / tasks_per_block;
  return dim3(static_cast<unsigned>(
      std::clamp<std::int64_t>(blocks, 1, kBlocksPerMultiprocessor * num_multiprocessors)));
}

}  // namespace fovea::cuda
