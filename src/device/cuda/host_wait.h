#pragma once

#include <atomic>
#include <cstdint>

#include "device/cuda/handles.h"
#include "device/cuda_abi.h"

namespace fovea::cuda {

/// How threads wait for the streams of a device. A thread that spins answers soonest on a quiet
/// host, but where other programs want its processor the scheduler takes it away for whole turns of
/// theirs (20 ms with 6 threads on a processor); one that sleeps wakes up soon on both, some 0.1 ms
/// later than a quiet spin. kAuto spins until a spinning thread has lost its processor, then
/// lets threads sleep for a while. For several threads at a time.
class HostWait {
 public:
  explicit HostWait(CudaWait way) noexcept : way_(way) {}

  /// Waits until everything submitted to `stream` has run. @param end an event made with
  /// cudaEventBlockingSync that nobody else uses. @throws Error(kDevice).
  void wait(cudaStream_t stream, cudaEvent_t end);
  /// Waits begun so far.
  [[nodiscard]] std::int64_t count() const noexcept { return count_; }
  /// Counts a wait that is done elsewhere.
  void add() noexcept { ++count_; }

 private:
  void spin(cudaStream_t stream);
  static void sleep(cudaStream_t stream, cudaEvent_t end);

  CudaWait way_;
  std::atomic<std::int64_t> sleep_until_ns_{0};  // of CLOCK_MONOTONIC; for kAuto
  std::atomic<std::int64_t> count_{0};
};

}  // namespace fovea::cuda
