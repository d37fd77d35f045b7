// How members of a team wait for each other: flags in the memory of each, written by the others.
//
// One warp, a lane for each member: says that this one has come, then looks until that one has.
// What kernels before this one have written, here and on other GPUs, is there for the kernels
// behind it: they have ended, the flag is stored with release and loaded with acquire, both for the
// whole system. The kernel behind it does not start early. It would sit in the shared memory of
// all SMs, where members share a GPU, and keep those that are waited for from getting here.
#include <cstdint>
#include <nv/target>

#include "device/cuda/cuda_stream.h"
#include "fovea/tower/device/team.h"

namespace fovea::cuda {

namespace {

constexpr unsigned kLanes = 32;
constexpr std::uint64_t kNsPerMs = 1'000'000;
constexpr unsigned kLooks = 64;  // between two looks at the clock, and at the memory of the host
static_assert(TeamFlags::kMaxMembers <= kLanes);

__device__ void store_release(std::uint32_t* to, std::uint32_t value) {
  asm volatile("st.release.sys.global.u32 [%0], %1;" ::"l"(to), "r"(value) : "memory");
}
__device__ std::uint32_t load_acquire(const std::uint32_t* from) {
  std::uint32_t value = 0;
  asm volatile("ld.acquire.sys.global.u32 %0, [%1];" : "=r"(value) : "l"(from) : "memory");
  return value;
}
__device__ std::uint64_t now_ns() {
  std::uint64_t ns = 0;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(ns));
  return ns;
}

/// @return false: in vain.
__device__ bool wait_until(const std::uint32_t* arrived, std::uint32_t meeting, const Team& team) {
  const std::uint64_t start = now_ns();
  for (unsigned looks = 1; static_cast<std::int32_t>(load_acquire(arrived) - meeting) < 0;
       ++looks) {
    if (looks % kLooks != 0) continue;
    if (now_ns() - start > team.timeout_ms * kNsPerMs) return false;
    if (load_acquire(team.is_lost) != 0) return false;
  }
  return true;
}

__global__ void __launch_bounds__(kLanes) meet_kernel(const __grid_constant__ Team team) {
  NV_IF_TARGET(NV_PROVIDES_SM_90, (cudaGridDependencySynchronize();))
  TeamFlags& own = *team.flags[team.rank];
  const std::uint32_t meeting = own.meetings + 1;
  const bool waits = own.is_lost == 0;
  __syncwarp();
  if (threadIdx.x == 0) own.meetings = meeting;
  const int member = static_cast<int>(threadIdx.x);
  if (member >= team.size) return;
  __threadfence_system();
  store_release(&team.flags[member]->arrived[team.rank], meeting);
  if (!waits || wait_until(&own.arrived[member], meeting, team)) return;
  own.is_lost = 1;
  store_release(team.is_lost, 1);
}

}  // namespace

void CudaStream::meet(const Team& team) {
  const DeviceGuard guard(device_index_);
  cudaLaunchAttribute early{};
  early.id = cudaLaunchAttributeProgrammaticStreamSerialization;
  early.val.programmaticStreamSerializationAllowed = 1;
  cudaLaunchConfig_t config{};
  config.gridDim = dim3(1);
  config.blockDim = dim3(kLanes);
  config.stream = handle();
  config.attrs = &early;
  config.numAttrs = traits_.starts_kernels_early ? 1 : 0;
  FOVEA_CUDA_CHECK(cudaLaunchKernelEx(&config, &meet_kernel, team));
}

}  // namespace fovea::cuda
