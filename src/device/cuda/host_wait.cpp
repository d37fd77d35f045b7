#include "device/cuda/host_wait.h"

#include <ctime>

#include "core/short_turn.h"

namespace fovea::cuda {

namespace {

/// A spinning thread that lost more than this shares its processor: interrupts and threads of the
/// kernel take some 0.1 ms.
constexpr std::int64_t kMostLostNs = 1'000'000;
constexpr std::int64_t kSleepForNs = 1'000'000'000;

std::int64_t now_ns(clockid_t clock) {
  timespec time{};
  (void)clock_gettime(clock, &time);
  return std::int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
}

}  // namespace

void HostWait::wait(cudaStream_t stream, cudaEvent_t end) {
  ++count_;
  const bool sleeps = way_ == CudaWait::kSleep ||
                      (way_ == CudaWait::kAuto && now_ns(CLOCK_MONOTONIC) < sleep_until_ns_);
  sleeps ? sleep(stream, end) : spin(stream);
}

void HostWait::spin(cudaStream_t stream) {
  const std::int64_t began = now_ns(CLOCK_MONOTONIC);
  const std::int64_t began_running = now_ns(CLOCK_THREAD_CPUTIME_ID);
  FOVEA_CUDA_CHECK(cudaStreamSynchronize(stream));
  const std::int64_t now = now_ns(CLOCK_MONOTONIC);
  const std::int64_t ran = now_ns(CLOCK_THREAD_CPUTIME_ID) - began_running;
  if (now - began - ran > kMostLostNs) sleep_until_ns_ = now + kSleepForNs;
}

void HostWait::sleep(cudaStream_t stream, cudaEvent_t end) {
  FOVEA_CUDA_CHECK(cudaEventRecord(end, stream));
  const ShortTurn turn;
  FOVEA_CUDA_CHECK(cudaEventSynchronize(end));
}

}  // namespace fovea::cuda
