// Stands in for the driver's management library: one GPU with a counter that a test sets, one
// without.
#include <cstring>

namespace {

struct Driver {
  int sessions = 0;
  unsigned long long millijoules = 0;
  bool is_lost = false;
  int with_counter = 0;  // of the two GPUs, the addresses count
  int without_counter = 0;
};

Driver& driver() {
  static Driver one;
  return one;
}

constexpr int kSuccess = 0;
constexpr int kNotSupported = 3;
constexpr int kNotFound = 6;

}  // namespace

#pragma GCC visibility push(default)
extern "C" {

// NOLINTBEGIN(readability-identifier-naming): these names are NVML's.
int nvmlInit_v2() {
  ++driver().sessions;
  return kSuccess;
}
int nvmlShutdown() {
  --driver().sessions;
  return kSuccess;
}
int nvmlDeviceGetHandleByPciBusId_v2(const char* id, void** gpu) {
  const bool has_counter = std::strcmp(id, "0000:01:00.0") == 0;
  *gpu = has_counter ? &driver().with_counter : &driver().without_counter;
  return std::strncmp(id, "0000:", 5) == 0 ? kSuccess : kNotFound;
}
int nvmlDeviceGetTotalEnergyConsumption(void* gpu, unsigned long long* millijoules) {
  const Driver& d = driver();
  if (gpu != &d.with_counter || d.is_lost || d.sessions == 0) return kNotSupported;
  *millijoules = d.millijoules;
  return kSuccess;
}
// NOLINTEND(readability-identifier-naming)

int fake_nvml_sessions() { return driver().sessions; }
void fake_nvml_set(unsigned long long millijoules, bool is_lost) {
  driver().millijoules = millijoules;
  driver().is_lost = is_lost;
}

}  // extern "C"
#pragma GCC visibility pop
