#pragma once

#include <algorithm>
#include <cstdint>
#include <nv/target>

#include "device/cuda/cuda_stream.h"
#include "fovea/tower/ops/context.h"
#include "ops/cuda/common/operands.h"

namespace fovea::cuda {

/// Lets the successor start up. Kernels that read what they may before they wait call it first.
__device__ inline void let_successor_start() {
  NV_IF_TARGET(NV_PROVIDES_SM_90, (cudaTriggerProgrammaticLaunchCompletion();))
}
/// Waits until the preceding kernel of the stream has finished. Every kernel of this backend does
/// so before it touches what others write, because launch() below starts kernels early: their
/// start-up then overlaps with the end of the predecessor. The successor may start up at once, too,
/// so a GEMM after a small kernel can load weights while the GEMM before that kernel still runs.
/// Since every kernel waits, a kernel that has finished implies that all kernels before it have.
/// Code for GPUs before Hopper, which start no kernel early, does nothing here.
__device__ inline void wait_for_predecessor() {
  let_successor_start();
  NV_IF_TARGET(NV_PROVIDES_SM_90, (cudaGridDependencySynchronize();))
}
/// As wait_for_predecessor, for GEMMs: the successor starts up only when this kernel has begun to
/// work, so that at most one GEMM is waiting.
__device__ inline void wait_before_matmul() {
  cudaGridDependencySynchronize();
  cudaTriggerProgrammaticLaunchCompletion();
}

/// Live rows: the count on the device, or the capacity if there is none. Counts and the bounds of
/// sequences are inputs of a forward pass, copied before its first kernel starts, so a kernel may
/// read them before it waits for its predecessor.
__device__ inline std::int64_t live_rows(const std::int32_t* count, std::int64_t capacity) {
  if (count == nullptr) return capacity;
  const std::int64_t live = *count;
  return live < capacity ? live : capacity;
}

/// The most shared memory that a CTA can have, in bytes, on Hopper and on every GPU since Ampere;
/// more than 48 KB have to be asked for.
inline constexpr std::size_t kHopperSharedBytes = 227 << 10;
inline constexpr std::size_t kPortableSharedBytes = 99 << 10;

/// How a kernel is launched. CUDA's description points to the attributes in the object itself.
class LaunchConfig {
 public:
  LaunchConfig(cudaStream_t stream, dim3 grid, dim3 block, std::size_t shared_bytes) {
    config_.gridDim = grid;
    config_.blockDim = block;
    config_.dynamicSmemBytes = shared_bytes;
    config_.stream = stream;
    config_.attrs = attributes_;
  }
  LaunchConfig(const LaunchConfig&) = delete;
  LaunchConfig& operator=(const LaunchConfig&) = delete;

  /// Programmatic dependent launch: CTAs may become resident before the predecessor ends.
  void start_early() {
    add(cudaLaunchAttributeProgrammaticStreamSerialization).programmaticStreamSerializationAllowed =
        1;
  }
  /// So many neighbouring CTAs are a cluster.
  void form_clusters(int blocks) {
    add(cudaLaunchAttributeClusterDimension).clusterDim = {static_cast<unsigned>(blocks), 1, 1};
  }
  /// All CTAs run at once, or none.
  void run_all_at_once() { add(cudaLaunchAttributeCooperative).cooperative = 1; }

  [[nodiscard]] const cudaLaunchConfig_t* get() const { return &config_; }

 private:
  cudaLaunchAttributeValue& add(cudaLaunchAttributeID id) {
    cudaLaunchAttribute& attribute = attributes_[config_.numAttrs++];
    attribute.id = id;
    return attribute.val;
  }

  cudaLaunchAttribute attributes_[2] = {};
  cudaLaunchConfig_t config_ = {};
};

/// Launches `kernel(args...)` on `stream`, and early where its code can wait in
/// wait_for_predecessor.
template <class... Parameters, class... Arguments>
void launch(CudaStream& stream, void (*kernel)(Parameters...), dim3 grid, dim3 block,
            std::size_t shared_bytes, Arguments... arguments) {
  const DeviceGuard guard(stream.device_index());
  constexpr std::size_t kFreeSharedBytes = 48 << 10;
  // The same value from every thread: the limit is a property of the kernel, not of this launch.
  if (shared_bytes > kFreeSharedBytes) {
    FOVEA_CUDA_CHECK(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                          static_cast<int>(stream.traits().shared_bytes)));
  }
  LaunchConfig config(stream.handle(), grid, block, shared_bytes);
  if (stream.traits().starts_kernels_early) config.start_early();
  FOVEA_CUDA_CHECK(cudaLaunchKernelEx(config.get(), kernel, static_cast<Parameters>(arguments)...));
}

/// A grid for `tasks` independent tasks, `tasks_per_block` in each CTA, with no more CTAs than
/// the GPU can run at once: for kernels with a grid-stride loop.
inline dim3 grid_for(std::int64_t tasks, std::int64_t tasks_per_block, int num_sms) {
  constexpr std::int64_t kCtasPerSm = 16;  // 128 to 256 threads each fill it
  const std::int64_t blocks = (tasks + tasks_per_block - 1) / tasks_per_block;
  return dim3(static_cast<unsigned>(std::clamp<std::int64_t>(blocks, 1, kCtasPerSm * num_sms)));
}

}  // namespace fovea::cuda
