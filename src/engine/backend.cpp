// Choosing a device by name.
#include "engine/backend.h"

#include <charconv>

#include "core/check.h"
#include "device/cpu/cpu_device.h"
#include "device/cuda_plugin.h"
#include "ops/cpu/cpu_kernels.h"

namespace fovea {

namespace {

Backend make_cpu(int num_threads) {
  Backend backend;
  backend.kernels = make_cpu_kernels(detect_cpu_isa(), num_threads);
  backend.device = make_cpu_device(num_threads, *backend.kernels);
  return backend;
}

/// The index in "cuda" (0) or "cuda:<index>".
int cuda_index(const std::string& name) {
  if (name == "cuda") return 0;
  const std::string_view digits = std::string_view(name).substr(std::string_view("cuda:").size());
  int index = -1;
  const auto [end, failure] = std::from_chars(digits.data(), digits.data() + digits.size(), index);
  FOVEA_CHECK(failure == std::errc{} && end == digits.data() + digits.size() && index >= 0,
              kInvalidArgument, "device must be auto, cpu, cuda or cuda:<index>, got \"", name,
              "\"");
  return index;
}

}  // namespace

Backend make_backend(const std::string& name, int num_threads, LogSink* log) {
  if (name == "cpu") return make_cpu(num_threads);
  if (name == "auto") {
    const CudaBackend cuda = find_cuda();
    if (!cuda.devices.empty()) return {nullptr, make_cuda_device(cuda, {})};
    log_to(log, LogLevel::kInfo, cat("device name=cpu gpu=none reason=\"", cuda.reason, "\""));
    return make_cpu(num_threads);
  }
  FOVEA_CHECK(name == "cuda" || name.starts_with("cuda:"), kInvalidArgument,
              "device must be auto, cpu, cuda or cuda:<index>, got \"", name, "\"");
  const int index = cuda_index(name);
  const CudaBackend cuda = find_cuda();
  FOVEA_CHECK(!cuda.devices.empty(), kUnsupported, "device ", name,
              " cannot be used: ", cuda.reason, "; use --device cpu");
  CudaDeviceOptions options;
  options.index = index;
  return {nullptr, make_cuda_device(cuda, options)};
}

std::string cuda_status() {
  const CudaBackend cuda = find_cuda();
  if (cuda.devices.empty()) return "not used: " + cuda.reason;
  std::string text;
  for (const std::string& device : cuda.devices) text += cat(text.empty() ? "" : "; ", device);
  return text + " (" + cuda.plugin_path + ")";
}

}  // namespace fovea
