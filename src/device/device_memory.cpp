// GPU memory that processes of one host share: names of it, and mappings.
#include "device/device_memory.h"

#include <utility>

#include "core/boundary.h"
#include "core/check.h"

namespace fovea {

namespace {

/// The GPUs of this process, for an error.
std::string names_of(const std::vector<CudaGpu>& gpus) {
  std::string names;
  for (const CudaGpu& gpu : gpus) names += cat(names.empty() ? "" : ", ", gpu.uuid);
  return names;
}

}  // namespace

DeviceMemoryName name_memory(const Device& device, const Buffer& memory) {
  const DeviceProperties& properties = device.properties();
  FOVEA_CHECK(!properties.host_memory, kUnsupported, properties.name,
              ": its memory has no name that other processes could map; only that of a GPU has");
  const CudaBackend backend = find_cuda();
  FOVEA_CHECK(backend.plugin != nullptr, kUnsupported, properties.name, ": ", backend.reason);
  return backend.plugin->name_memory(memory);
}

MappedBuffer map_memory(const CudaBackend& backend, const DeviceMemoryName& name) {
  FOVEA_CHECK(!backend.gpus.empty(), kUnsupported, "memory of ", name.gpu,
              " cannot be mapped: ", backend.reason);
  for (std::size_t i = 0; i < backend.gpus.size(); ++i) {
    if (backend.gpus[i].uuid != name.gpu) continue;
    return backend.plugin->map_memory(static_cast<int>(i), name);
  }
  throw Error(ErrorCode::kUnsupported,
              cat("memory of ", name.gpu, " cannot be mapped: this process sees ",
                  names_of(backend.gpus), " (CUDA_VISIBLE_DEVICES)"));
}

struct MappedMemory::Impl {
  MappedBuffer mapped;
};

MappedMemory::MappedMemory(const DeviceMemoryName& name) try
    : impl_(std::make_unique<Impl>(Impl{map_memory(find_cuda(), name)})) {
} catch (...) {
  rethrow_as_error();
}
MappedMemory::MappedMemory(MappedMemory&&) noexcept = default;
MappedMemory& MappedMemory::operator=(MappedMemory&&) noexcept = default;
MappedMemory::~MappedMemory() = default;

void* MappedMemory::data() const noexcept { return impl_->mapped.memory.data(); }
std::size_t MappedMemory::bytes() const noexcept { return impl_->mapped.memory.bytes(); }
int MappedMemory::device() const noexcept { return impl_->mapped.device; }

}  // namespace fovea
