#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "fovea/export.h"

namespace fovea {

/// A name of GPU memory by which another process of the same host maps it.
struct DeviceMemoryName {
  std::string gpu;                   ///< UUID of the GPU: "GPU-" and 36 characters
  std::vector<std::uint8_t> handle;  ///< the 64 bytes of a cudaIpcMemHandle_t
  std::size_t bytes = 0;             ///< of the memory
};

/// Memory of another process, mapped into this one until the object goes. Who has the name reads
/// and writes all of the memory: CUDA knows no smaller rights. The other process says what lies
/// where, and for how long. Move-only.
class FOVEA_API MappedMemory {
 public:
  /// Maps the memory on the GPU that the name says, in the context that CUDA's runtime uses, that
  /// of torch for example. The first time in a process also loads the GPU plugin; each asks the
  /// driver for all GPUs, so that keeping a mapping pays.
  /// @throws Error(kInvalidArgument) for a handle that is none; Error(kUnsupported) without a GPU,
  /// and if this process does not see the GPU, with those that it sees; Error(kDevice) if the
  /// driver cannot map the memory: it is gone, belongs to this process itself, or the processes are
  /// in different IPC namespaces.
  explicit MappedMemory(const DeviceMemoryName& name);
  MappedMemory(MappedMemory&&) noexcept;
  MappedMemory& operator=(MappedMemory&&) noexcept;
  /// Work that reads or writes the memory must have run.
  ~MappedMemory();

  [[nodiscard]] void* data() const noexcept;
  [[nodiscard]] std::size_t bytes() const noexcept;
  /// The number of the GPU in this process, as CUDA's runtime counts.
  [[nodiscard]] int device() const noexcept;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace fovea
