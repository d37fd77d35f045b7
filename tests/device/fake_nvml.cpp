// Stands in for the driver's management library: one GPU with a counter that a test sets, one
// without.
#include <cstring>

namespace {

constexpr int kSuccess = 0;
constexpr int kNotSupported = 3;
constexpr int kNotFound = 6;

int sessions = 0;
unsigned long long millijoules = 0;
bool is_lost = false;
int with_counter = 0;
int without_counter = 0;

}  // namespace

#define FAKE_NVML extern "C" __attribute__((visibility("default")))

FAKE_NVML int nvmlInit_v2() {
  ++sessions;
  return kSuccess;
}
FAKE_NVML int nvmlShutdown() {
  --sessions;
  return kSuccess;
}
FAKE_NVML int nvmlDeviceGetHandleByPciBusId_v2(const char* id, void** gpu) {
  *gpu = std::strcmp(id, "0000:01:00.0") == 0 ? &with_counter : &without_counter;
  return std::strncmp(id, "0000:", 5) == 0 ? kSuccess : kNotFound;
}
FAKE_NVML int nvmlDeviceGetTotalEnergyConsumption(void* gpu, unsigned long long* energy) {
  if (gpu != &with_counter || is_lost || sessions == 0) return kNotSupported;
  *energy = millijoules;
  return kSuccess;
}

FAKE_NVML int fake_nvml_sessions() { return sessions; }
FAKE_NVML void fake_nvml_set(unsigned long long energy, bool lost) {
  millijoules = energy;
  is_lost = lost;
}
