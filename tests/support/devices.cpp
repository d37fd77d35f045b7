// The backends that the tests run on.
#include "support/devices.h"

#include "core/check.h"
#include "device/cpu/cpu_device.h"
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

}  // namespace

std::vector<AvailableDevice> available_devices() {
  std::vector<AvailableDevice> devices;
  for (const CpuIsa isa : {CpuIsa::kPortable, CpuIsa::kAvx2, CpuIsa::kAvx512}) {
    if (isa <= detect_cpu_isa()) devices.push_back(cpu_device(isa));
  }
  return devices;
}

}  // namespace fovea::test
