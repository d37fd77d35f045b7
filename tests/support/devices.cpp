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

}  // namespace

bool has_gpu_with(CudaAttention attention) {
  const std::vector<int> gpus = usable_gpus(find_cuda());
  if (gpus.empty()) return false;
  try {
    (void)make_cuda_device(find_cuda(), {.index = gpus.front(), .attention = attention});
    return true;
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kUnsupported) throw;
    return false;
  }
}

std::vector<AvailableDevice> available_devices() {
  std::vector<AvailableDevice> devices;
  for (const CpuIsa isa : cpu_isas()) devices.push_back(cpu_device(isa));
  const std::vector<int> gpus = usable_gpus(find_cuda());
  if (gpus.empty()) return devices;
  const auto add = [&](const std::string& name, CudaAttention attention) {
    if (!has_gpu_with(attention)) return;
    devices.push_back(cuda_device(name, {.index = gpus.front(), .attention = attention}));
  };
  constexpr int kFewSms = 32;
  add("cuda", CudaAttention::kAuto);
  add("cuda_portable", CudaAttention::kPortable);
  add("cuda_hopper", CudaAttention::kHopper);
  add("cuda_cudnn", CudaAttention::kCudnn);
  devices.push_back(cuda_device("cuda_few_sms", {.index = gpus.front(), .sm_budget = kFewSms}));
  return devices;
}

std::vector<AvailableDevice> sleeping_gpus() {
  const std::vector<int> gpus = usable_gpus(find_cuda());
  if (gpus.empty()) return {};
  return {cuda_device("cuda_sleeping", {.index = gpus.front(), .wait = CudaWait::kSleep})};
}

}  // namespace fovea::test
