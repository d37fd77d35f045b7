#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "device/cuda_abi.h"
#include "fovea/tower/device/device.h"
#include "ops/kernels.h"

namespace fovea::test {

/// A device and, where it does not own them, the kernels it computes with.
struct DeviceUnderTest {
  std::unique_ptr<Kernels> kernels;
  std::unique_ptr<Device> device;
};

/// A backend that works on this machine.
struct AvailableDevice {
  std::string name;           ///< letters and digits, part of test names: "cpu_avx2"
  std::vector<DType> dtypes;  ///< activation dtypes its kernels take
  /// The leading rows of results depend on nothing else in the batch, bit for bit, and rows beyond
  /// the live ones are not written.
  bool exact_rows;
  std::function<DeviceUnderTest(int num_threads)> make;
};

/// Every backend of this machine: the CPU once per instruction set, then what else is there. The op
/// tests and the device tests run on all of them.
[[nodiscard]] std::vector<AvailableDevice> available_devices();

/// The GPU, if there is one, whose streams sleep while they wait.
[[nodiscard]] std::vector<AvailableDevice> sleeping_gpus();

/// Whether there is a GPU that can use this attention kernel: cuDNN is a library of its own, which
/// a machine with a GPU may lack, and Hopper's kernels run on no other GPU.
[[nodiscard]] bool has_gpu_with(CudaAttention attention);

}  // namespace fovea::test
