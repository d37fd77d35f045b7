// The backends that the tests run on.
#include "support/devices.h"

#include "core/check.h"
#include "device/cpu/cpu_device.h"
#include "device/cuda_plugin.h"
#include "ops/cpu/cpu_kernels.h"

namespace fovea::test {

namespace {

AvailableDevice cpu_device(CpuIsa isa) {
  return {.name = cat("cpu_", to_string(isa)),
          .dtypes = {DType::kF32},
          .exact_rows = true,
          .make = [isa](int num_threads) {
            DeviceUnderTest made;
            made.kernels = make_cpu_kernels(isa, num_threads);
            made.device = make_cpu_device(num_threads, *made.kernels);
            return made;
          }};
}

/// One GPU with one way to compute attention.
AvailableDevice cuda_device(const std::string& name, const CudaDeviceOptions& options) {
  return {.name = name, .dtypes = {DType::kBF16}, .exact_rows = false, .make = [options](int) {
            return DeviceUnderTest{nullptr, make_cuda_device(find_cuda(), options)};
          }};
}

/// cuDNN is a library of its own, which a machine with a GPU may lack.
bool has_cudnn(int index) {
  try {
    (void)make_cuda_device(find_cuda(), {.index = index, .attention = CudaAttention::kCudnn});
    return true;
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kUnsupported) throw;
    return false;
  }
}

}  // namespace

std::vector<AvailableDevice> available_devices() {
  std::vector<AvailableDevice> devices;
  for (const CpuIsa isa : {CpuIsa::kPortable, CpuIsa::kAvx2, CpuIsa::kAvx512}) {
    if (isa <= detect_cpu_isa()) devices.push_back(cpu_device(isa));
  }
  const std::vector<int> gpus = usable_gpus(find_cuda());
  if (gpus.empty()) return devices;
  const auto add = [&](const std::string& name, CudaAttention attention) {
    devices.push_back(cuda_device(name, {.index = gpus.front(), .attention = attention}));
  };
  add("cuda", CudaAttention::kAuto);
  add("cuda_portable", CudaAttention::kPortable);
  add("cuda_hopper", CudaAttention::kHopper);
  if (has_cudnn(gpus.front())) add("cuda_cudnn", CudaAttention::kCudnn);
  return devices;
}

}  // namespace fovea::test
