#pragma once

#include <memory>
#include <optional>
#include <string>

namespace fovea {

/// The energy that one GPU has taken, by all its users, by the counter of its driver. The driver's
/// management library (NVML) is looked for at run time; a machine without it, or a GPU without the
/// counter, has no figures. The driver updates the counter every 20 to 100 ms. Thread-safe.
class EnergyCounter {
 public:
  static constexpr const char* kLibrary = "libnvidia-ml.so.1";

  /// @param pci_bus_id of the GPU, "0000:3b:00.0"; empty: no figures. @param library another one
  /// than the driver's is for tests.
  explicit EnergyCounter(const std::string& pci_bus_id, const std::string& library = kLibrary);
  ~EnergyCounter();
  EnergyCounter(EnergyCounter&&) noexcept;
  EnergyCounter& operator=(EnergyCounter&&) noexcept;
  EnergyCounter(const EnergyCounter&) = delete;
  EnergyCounter& operator=(const EnergyCounter&) = delete;

  /// Joules since construction; absent where there are no figures. Takes microseconds.
  [[nodiscard]] std::optional<double> joules() const;

 private:
  struct Nvml;

  std::unique_ptr<const Nvml> nvml_;  // null: no figures
};

}  // namespace fovea
