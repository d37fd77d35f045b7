// The note of libfovea_cuda.so and its only symbol.
#include <array>
#include <string>

#include "core/check.h"
#include "device/cuda/cuda_device.h"
#include "device/cuda/memory_names.h"
#include "device/cuda_abi.h"
#include "device/cuda_interface.h"
#include "ops/cuda/attention/cudnn.h"
#include "ops/cuda/common/compute_capability.h"
#include "ops/cuda/cuda_kernels.h"

namespace fovea::cuda {

namespace {

/// Empty if it cannot be asked: only figures of energy need it.
std::string pci_bus_id_of(int index) {
  std::array<char, 32> id{};
  if (cudaDeviceGetPCIBusId(id.data(), static_cast<int>(id.size()), index) != cudaSuccess) {
    (void)cudaGetLastError();
    return {};
  }
  return id.data();
}

CudaGpu ask(int index) {
  try {
    cudaDeviceProp found{};
    FOVEA_CUDA_CHECK(cudaGetDeviceProperties(&found, index));
    const std::string refusal =
        refusal_of_compute(FOVEA_CUDA_ARCHITECTURES, found.major, found.minor);
    return {.description = cat(
                found.name, ", compute ", found.major, ".", found.minor,
                refusal.empty()
                    ? cat(", ", kernels_of_compute(found.major, found.minor, has_hopper_build()))
                    : ""),
            .unusable = refusal,
            .pci_bus_id = pci_bus_id_of(index),
            .uuid = uuid_text(found.uuid)};
  } catch (const Error& error) {
    return {.description = "GPU without an answer", .unusable = error.what()};
  }
}

std::vector<CudaGpu> list_gpus(std::string& reason) {
  int count = 0;
  const cudaError_t status = cudaGetDeviceCount(&count);
  // Without a driver the runtime answers cudaErrorInsufficientDriver, not cudaErrorNoDevice.
  if (status == cudaErrorInsufficientDriver) {
    (void)cudaGetLastError();
    reason = cat("the NVIDIA driver is missing or too old for CUDA ", CUDART_VERSION / 1000);
    return {};
  }
  if (status != cudaSuccess || count == 0) {
    (void)cudaGetLastError();
    reason =
        cat("no GPU: ", cudaGetErrorString(status == cudaSuccess ? cudaErrorNoDevice : status));
    return {};
  }
  std::vector<CudaGpu> gpus;
  for (int index = 0; index < count; ++index) gpus.push_back(ask(index));
  return gpus;
}

std::unique_ptr<Device> create_device(const CudaDeviceOptions& options) {
  const KernelSets sets = kernel_sets_of(options.index);
  auto sms = std::make_shared<const SmPartition>(options.index, options.sm_budget);
  auto kernels = make_cuda_kernels(options, sets, sms);
  std::string software = software_versions();
  if (options.attention == CudaAttention::kCudnn) software += ", " + CudnnAttention::software();
  return make_device({.sms = std::move(sms),
                      .wait = options.wait,
                      .software = std::move(software),
                      .kernels = std::move(kernels),
                      .start_early = sets.start_early});
}

[[gnu::section(".note.fovea"), gnu::aligned(4), gnu::used]] constexpr PluginNote kNote{
    .build = kCudaPluginBuild};

}  // namespace

}  // namespace fovea::cuda

extern "C" __attribute__((visibility("default"))) const fovea::CudaPlugin* fovea_cuda_plugin() {
  static const fovea::CudaPlugin plugin{.list_gpus = &fovea::cuda::list_gpus,
                                        .create_device = &fovea::cuda::create_device,
                                        .name_memory = &fovea::cuda::name_memory,
                                        .map_memory = &fovea::cuda::map_memory};
  return &plugin;
}
