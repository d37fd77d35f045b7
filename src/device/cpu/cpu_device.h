#pragma once

#include <memory>

#include "fovea/tower/device/device.h"

namespace fovea {

class ThreadPool;

/// Creates the CPU backend.
/// @param num_threads threads of the math loops; 0 means available_cpus().
/// @param kernels what the device computes with (ops/cpu/cpu_kernels.h makes it); must outlive it.
[[nodiscard]] std::unique_ptr<Device> make_cpu_device(int num_threads, const Kernels& kernels);

/// The stream of the CPU backend: closures that run at once, or are kept during a capture.
class CpuStream final : public Stream {
 public:
  /// `pool` must outlive the stream.
  explicit CpuStream(ThreadPool& pool) noexcept : pool_(pool) {}

  /// Runs `work(pool)` now, or records it while a capture is under way. What `work` refers to by
  /// address is read at the time it runs. Work runs in kTowerFloatMode (core/float_mode.h).
  void submit(std::function<void(ThreadPool&)> work);

  void copy(std::byte* dst, const std::byte* src, std::size_t bytes) override;
  void fill_zero(std::byte* dst, std::size_t bytes) override;
  void copy_rows(const RowCopy& copy) override { fovea::copy_rows(copy); }
  [[nodiscard]] std::unique_ptr<RecordedGraph> capture(
      const std::function<void()>& record) override;
  void replay(const RecordedGraph& graph) override;
  void wait_for(Stream& other) override;
  void meet(const Team& team) override;
  [[nodiscard]] bool is_idle() const override { return true; }
  void synchronize() override;

 private:
  class Recording;
  ThreadPool& pool_;
  Recording* recording_ = nullptr;  // set while a capture is under way
};

}  // namespace fovea
