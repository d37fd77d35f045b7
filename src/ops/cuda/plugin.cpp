// The only door of libfovea_cuda.so.
#include "core/check.h"
#include "device/cuda/cuda_device.h"
#include "device/cuda_abi.h"
#include "fovea/version.h"
#include "ops/cuda/cuda_kernels.h"

namespace fovea::cuda {

namespace {

constexpr int kComputeMajor = 9;  // the kernels are compiled for Hopper, sm_90a
constexpr int kComputeMinor = 0;

int count_devices(std::string& reason) {
  int count = 0;
  const cudaError_t status = cudaGetDeviceCount(&count);
  // Without a driver the runtime answers cudaErrorInsufficientDriver, not cudaErrorNoDevice.
  if (status == cudaErrorInsufficientDriver) {
    (void)cudaGetLastError();
    reason = cat("the NVIDIA driver is missing or too old for CUDA ", CUDART_VERSION / 1000);
    return 0;
  }
  if (status != cudaSuccess || count == 0) {
    (void)cudaGetLastError();
    reason =
        cat("no GPU: ", cudaGetErrorString(status == cudaSuccess ? cudaErrorNoDevice : status));
    return 0;
  }
  return count;
}

cudaDeviceProp properties_of(int index) {
  cudaDeviceProp properties{};
  FOVEA_CUDA_CHECK(cudaGetDeviceProperties(&properties, index));
  return properties;
}

std::string describe_device(int index) {
  const cudaDeviceProp properties = properties_of(index);
  return cat(properties.name, ", compute ", properties.major, ".", properties.minor);
}

std::unique_ptr<Device> create_device(const CudaDeviceOptions& options) {
  std::string reason;
  const int count = count_devices(reason);
  FOVEA_CHECK(count > 0, kUnsupported, "cuda:", options.index, ": ", reason);
  FOVEA_CHECK(options.index >= 0 && options.index < count, kUnsupported, "cuda:", options.index,
              ": this machine has ", count, " GPUs, numbered from 0");
  const cudaDeviceProp properties = properties_of(options.index);
  FOVEA_CHECK(properties.major == kComputeMajor && properties.minor == kComputeMinor, kUnsupported,
              "cuda:", options.index, ": this build has kernels for compute ", kComputeMajor, ".",
              kComputeMinor, ", ", properties.name, " has ", properties.major, ".",
              properties.minor);
  return make_device(options.index, std::make_shared<const CudaKernels>(options));
}

}  // namespace

}  // namespace fovea::cuda

extern "C" __attribute__((visibility("default"))) const fovea::CudaPlugin* fovea_cuda_plugin(
    int interface_number) {
  static const fovea::CudaPlugin plugin{.interface_number = fovea::kCudaPluginInterface,
                                        .version = fovea::version(),
                                        .count_devices = &fovea::cuda::count_devices,
                                        .describe_device = &fovea::cuda::describe_device,
                                        .create_device = &fovea::cuda::create_device};
  return interface_number == fovea::kCudaPluginInterface ? &plugin : nullptr;
}
