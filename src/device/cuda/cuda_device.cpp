// One GPU: its memory, its streams and what it is called.
#include "device/cuda/cuda_device.h"

#include <dlfcn.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <system_error>

#include "core/check.h"
#include "device/cuda/cuda_stream.h"
#include "device/cuda/handles.h"

namespace fovea::cuda {

namespace {

class CudaDevice final : public Device {
 public:
  explicit CudaDevice(CudaDeviceParts parts)
      : index_(parts.sms->device_index()),
        sms_(std::move(parts.sms)),
        kernels_(std::move(parts.kernels)),
        clearing_(sms_->create_stream()),
        host_wait_(parts.wait) {
    const DeviceGuard guard(index_);
    cudaDeviceProp found{};
    FOVEA_CUDA_CHECK(cudaGetDeviceProperties(&found, index_));
    properties_ = {.name = cat("cuda:", index_),
                   .description = found.name,
                   .software = std::move(parts.software),
                   .activation_dtype = DType::kBF16,
                   .host_memory = false,
                   .parallelism = sms_->num_sms(),
                   .total_bytes = found.totalGlobalMem};
    traits_ = {.shared_bytes = found.sharedMemPerBlockOptin,
               .starts_kernels_early = parts.start_early};
  }

  [[nodiscard]] const DeviceProperties& properties() const noexcept override { return properties_; }
  [[nodiscard]] const Kernels& kernels() const noexcept override { return *kernels_; }

  [[nodiscard]] Buffer allocate(std::size_t bytes) override {
    const DeviceGuard guard(index_);
    void* data = nullptr;
    const std::size_t size = std::max<std::size_t>(bytes, 1);
    check_memory(cudaMalloc(&data, size), "cudaMalloc", bytes);
    allocated_ += bytes;
    Buffer buffer(static_cast<std::byte*>(data), bytes, &CudaDevice::release, this);
    host_wait_.add();
    FOVEA_CUDA_CHECK(cudaMemsetAsync(data, 0, size, clearing_.get()));
    FOVEA_CUDA_CHECK(cudaStreamSynchronize(clearing_.get()));
    return buffer;
  }

  [[nodiscard]] Buffer allocate_host(std::size_t bytes) override {
    const DeviceGuard guard(index_);
    void* data = nullptr;
    const std::size_t size = std::max<std::size_t>(bytes, 1);
    check_memory(cudaHostAlloc(&data, size, cudaHostAllocPortable), "cudaHostAlloc", bytes);
    std::memset(data, 0, size);
    return {static_cast<std::byte*>(data), bytes, &CudaDevice::release_host, this};
  }

  [[nodiscard]] std::unique_ptr<Stream> create_stream() override {
    return std::make_unique<CudaStream>(
        index_, traits_, sms_->create_stream(),
        allocate(CudaStream::kLibraryScratchBytes + CudaStream::kOwnScratchBytes), host_wait_);
  }
  [[nodiscard]] std::unique_ptr<Stream> create_copy_stream() override {
    return std::make_unique<CudaStream>(index_, traits_, sms_->create_stream(), Buffer(),
                                        host_wait_);
  }

  [[nodiscard]] std::size_t allocated_bytes() const noexcept override { return allocated_; }

  [[nodiscard]] std::unique_ptr<Stream> adopt_stream(int gpu, void* handle) override {
    int count = 0;
    FOVEA_CUDA_CHECK(cudaGetDeviceCount(&count));
    FOVEA_CHECK(gpu >= 0 && gpu < count, kInvalidArgument, "a stream of cuda:", gpu,
                ", but this machine has ", count, " GPUs");
    return std::make_unique<CudaStream>(gpu, traits_, static_cast<cudaStream_t>(handle),
                                        host_wait_);
  }
  [[nodiscard]] bool reach(const Device& other) override {
    const auto* const gpu = dynamic_cast<const CudaDevice*>(&other);
    if (gpu == nullptr) return false;
    if (gpu->index_ == index_) return true;
    const DeviceGuard guard(index_);
    // Atomics of a peer are native where NVLink connects the two. Over PCIe a team would be slower
    // than one GPU.
    for (const auto attribute :
         {cudaDevP2PAttrAccessSupported, cudaDevP2PAttrNativeAtomicSupported}) {
      int has = 0;
      FOVEA_CUDA_CHECK(cudaDeviceGetP2PAttribute(&has, attribute, index_, gpu->index_));
      if (has == 0) return false;
    }
    const cudaError_t status = cudaDeviceEnablePeerAccess(gpu->index_, 0);
    if (status == cudaErrorPeerAccessAlreadyEnabled) {
      (void)cudaGetLastError();
    } else {
      FOVEA_CUDA_CHECK(status);
    }
    return true;
  }
  [[nodiscard]] bool is_memory_of(const void* data, int gpu) const override {
    const DeviceGuard guard(index_);
    cudaPointerAttributes found{};
    FOVEA_CUDA_CHECK(cudaPointerGetAttributes(&found, data));
    switch (found.type) {
      case cudaMemoryTypeManaged: return true;
      case cudaMemoryTypeDevice: return found.device == gpu;
      default: return gpu < 0;
    }
  }
  [[nodiscard]] std::int64_t host_waits() const noexcept override { return host_wait_.count(); }

 private:
  /// The runtime calls sizes beyond any memory an invalid value.
  void check_memory(cudaError_t status, const char* call, std::size_t bytes) const {
    if (status == cudaErrorMemoryAllocation || status == cudaErrorInvalidValue) {
      (void)cudaGetLastError();
      throw Error(ErrorCode::kOutOfMemory,
                  cat(properties_.name, ": ", call, " cannot allocate ", bytes, " bytes"));
    }
    check(status, call);
  }
  static void release(void* context, std::byte* data, std::size_t bytes) noexcept {
    (void)cudaFree(data);  // finds the GPU by the address
    static_cast<CudaDevice*>(context)->allocated_ -= bytes;
  }
  static void release_host(void*, std::byte* data, std::size_t) noexcept {
    (void)cudaFreeHost(data);
  }

  int index_;
  std::shared_ptr<const SmPartition> sms_;
  std::shared_ptr<const Kernels> kernels_;
  DeviceProperties properties_;
  GpuTraits traits_{};
  UniqueStream clearing_;  // zeroes new memory without touching the default stream
  std::atomic<std::size_t> allocated_{0};
  HostWait host_wait_;
};

}  // namespace

std::unique_ptr<Device> make_device(CudaDeviceParts parts) {
  return std::make_unique<CudaDevice>(std::move(parts));
}

std::string software_versions() {
  int runtime = 0;
  int driver = 0;
  FOVEA_CUDA_CHECK(cudaRuntimeGetVersion(&runtime));
  FOVEA_CUDA_CHECK(cudaDriverGetVersion(&driver));
  std::uintmax_t bytes = 0;
  std::filesystem::file_time_type::rep written = 0;
  std::error_code ignored;
  Dl_info plugin{};
  if (dladdr(reinterpret_cast<const void*>(&software_versions), &plugin) != 0) {
    bytes = std::filesystem::file_size(plugin.dli_fname, ignored);
    written =
        std::filesystem::last_write_time(plugin.dli_fname, ignored).time_since_epoch().count();
  }
  return cat("driver ", driver, ", CUDA ", runtime, ", cuBLASLt ", cublasLtGetVersion(),
             ", plugin of ", bytes, " bytes at ", written);
}

}  // namespace fovea::cuda
