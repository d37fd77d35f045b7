// The energy counter of a GPU. NVML comes with the driver and is never linked, so that one program
// runs on machines with and without it; this file declares the four functions that it calls.
// Source: NVML API reference, "Initialization and Cleanup", "Device Queries".
#include "device/energy_counter.h"

#include <dlfcn.h>

namespace fovea {

namespace {

constexpr int kSuccess = 0;  // NVML_SUCCESS
constexpr double kMillijoules = 1e-3;

template <class Function>
bool find(void* library, const char* name, Function& function) {
  function = reinterpret_cast<Function>(dlsym(library, name));
  return function != nullptr;
}

}  // namespace

/// A session of the library, and one GPU in it.
struct EnergyCounter::Nvml {
  using Gpu = void*;  // nvmlDevice_t

  int (*begin)() = nullptr;
  int (*end)() = nullptr;
  int (*find_gpu)(const char* pci_bus_id, Gpu* gpu) = nullptr;
  int (*read)(Gpu gpu, unsigned long long* millijoules) = nullptr;
  bool has_begun = false;
  Gpu gpu = nullptr;
  unsigned long long at_start = 0;

  Nvml() = default;
  Nvml(const Nvml&) = delete;
  Nvml& operator=(const Nvml&) = delete;
  ~Nvml() {
    if (has_begun) (void)end();
  }

  /// Whether the library is there and the GPU has a counter.
  [[nodiscard]] bool open(const std::string& pci_bus_id, const std::string& library) {
    // It stays loaded: others in this process may use it, too.
    void* const handle = dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    if (handle == nullptr) return false;
    if (!find(handle, "nvmlInit_v2", begin) || !find(handle, "nvmlShutdown", end) ||
        !find(handle, "nvmlDeviceGetHandleByPciBusId_v2", find_gpu) ||
        !find(handle, "nvmlDeviceGetTotalEnergyConsumption", read)) {
      return false;
    }
    has_begun = begin() == kSuccess;
    return has_begun && find_gpu(pci_bus_id.c_str(), &gpu) == kSuccess &&
           read(gpu, &at_start) == kSuccess;
  }
};

EnergyCounter::EnergyCounter(const std::string& pci_bus_id, const std::string& library) {
  if (pci_bus_id.empty()) return;
  auto nvml = std::make_unique<Nvml>();
  if (nvml->open(pci_bus_id, library)) nvml_ = std::move(nvml);
}

EnergyCounter::~EnergyCounter() = default;
EnergyCounter::EnergyCounter(EnergyCounter&&) noexcept = default;
EnergyCounter& EnergyCounter::operator=(EnergyCounter&&) noexcept = default;

std::optional<double> EnergyCounter::joules() const {
  if (!nvml_) return std::nullopt;
  unsigned long long now = 0;
  if (nvml_->read(nvml_->gpu, &now) != kSuccess || now < nvml_->at_start) return std::nullopt;
  return static_cast<double>(now - nvml_->at_start) * kMillijoules;
}

}  // namespace fovea
