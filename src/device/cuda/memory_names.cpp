// Memory of cudaMalloc under names for other processes, and mappings of that of others. A handle of
// CUDA stands for the address that it was made of: who opens it gets that very place.
#include "device/cuda/memory_names.h"

#include <cstdint>
#include <cstring>

#include "core/check.h"
#include "device/cuda/cuda_check.h"
#include "device/cuda/handles.h"

namespace fovea::cuda {

namespace {

/// The GPU that memory is of.
int gpu_of(const std::byte* memory) {
  cudaPointerAttributes found{};
  FOVEA_CUDA_CHECK(cudaPointerGetAttributes(&found, memory));
  FOVEA_CHECK(found.type == cudaMemoryTypeDevice, kInternal, "no memory of a GPU has been given");
  return found.device;
}

/// What the driver says about memory that it cannot map is short: here is what it comes from.
void check_mapped(cudaError_t status, const DeviceMemoryName& name) {
  if (status == cudaSuccess) return;
  (void)cudaGetLastError();
  throw Error(ErrorCode::kDevice,
              cat("memory of another process on ", name.gpu,
                  " cannot be mapped: ", cudaGetErrorString(status), " (", cudaGetErrorName(status),
                  "); the process may have ended, be this one, or be in another container, whose "
                  "IPC namespace must be the same (--ipc)"));
}

/// @param gpu its number.
void unmap(void* gpu, std::byte* mapped, std::size_t) noexcept {
  try {
    const DeviceGuard guard(static_cast<int>(reinterpret_cast<std::intptr_t>(gpu)));
    (void)cudaIpcCloseMemHandle(mapped);
  } catch (const Error&) {  // NOLINT: at the end of a process CUDA has gone before, and the mapping
  }
}

}  // namespace

std::string uuid_text(const cudaUUID_t& uuid) {
  constexpr const char* kDigits = "0123456789abcdef";
  std::string text = "GPU-";
  for (std::size_t i = 0; i < sizeof(uuid.bytes); ++i) {
    if (i == 4 || i == 6 || i == 8 || i == 10) text += '-';
    const auto byte = static_cast<unsigned char>(uuid.bytes[i]);
    text += kDigits[byte >> 4U];
    text += kDigits[byte & 0xfU];
  }
  return text;
}

DeviceMemoryName name_memory(const Buffer& memory) {
  const int gpu = gpu_of(memory.data());
  const DeviceGuard guard(gpu);
  cudaDeviceProp found{};
  FOVEA_CUDA_CHECK(cudaGetDeviceProperties(&found, gpu));
  cudaIpcMemHandle_t handle{};
  const cudaError_t status = cudaIpcGetMemHandle(&handle, memory.data());
  if (status == cudaErrorNotSupported) {
    (void)cudaGetLastError();
    throw Error(ErrorCode::kUnsupported,
                cat("cuda:", gpu, ": the driver shares no memory between processes here (",
                    cudaGetErrorString(status), ")"));
  }
  check(status, "cudaIpcGetMemHandle");
  const auto* const bytes = reinterpret_cast<const std::uint8_t*>(&handle);
  return {.gpu = uuid_text(found.uuid),
          .handle = {bytes, bytes + sizeof(handle)},
          .bytes = memory.bytes()};
}

MappedBuffer map_memory(int gpu, const DeviceMemoryName& name) {
  cudaIpcMemHandle_t handle{};
  FOVEA_CHECK(name.handle.size() == sizeof(handle), kInvalidArgument, "memory of ", name.gpu,
              ": expected a handle of ", sizeof(handle), " bytes, got ", name.handle.size());
  std::memcpy(&handle, name.handle.data(), sizeof(handle));
  const DeviceGuard guard(gpu);
  void* data = nullptr;
  check_mapped(cudaIpcOpenMemHandle(&data, handle, cudaIpcMemLazyEnablePeerAccess), name);
  auto* const number = reinterpret_cast<void*>(static_cast<std::intptr_t>(gpu));
  return {.memory = Buffer(static_cast<std::byte*>(data), name.bytes, &unmap, number),
          .device = gpu};
}

}  // namespace fovea::cuda
