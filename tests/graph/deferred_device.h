#pragma once

#include <atomic>
#include <cstddef>
#include <deque>
#include <functional>
#include <limits>
#include <memory>
#include <vector>

#include "fovea/tower/device/device.h"

namespace fovea::test {

/// In which order a DeferredDevice runs work of its queues that may run in any order.
enum class Schedule : std::uint8_t {
  kLast,       ///< as late as possible: nothing runs before somebody waits for it
  kCopyFirst,  ///< queues for copies as early as possible
};

/// A queue like that of a GPU: work runs after the call that submitted it, at any time that
/// wait_for and synchronize allow.
class DeferredStream final : public Stream {
 public:
  /// @param waits counts what synchronize() waits for.
  DeferredStream(bool run_at_once, std::atomic<std::int64_t>& waits) noexcept
      : run_at_once_(run_at_once), waits_(waits) {}
  /// The queue `other` under another name.
  explicit DeferredStream(DeferredStream& other) noexcept
      : run_at_once_(false), waits_(other.waits_), other_(&other) {}

  void submit(std::function<void()> work);

  void copy(std::byte* dst, const std::byte* src, std::size_t bytes) override;
  void fill_zero(std::byte* dst, std::size_t bytes) override;
  void copy_rows(const RowCopy& copy) override {
    submit([=] { fovea::copy_rows(copy); });
  }
  [[nodiscard]] std::unique_ptr<RecordedGraph> capture(
      const std::function<void()>& record) override;
  void replay(const RecordedGraph& graph) override;
  void wait_for(Stream& other) override;
  void meet(const Team&) override {}
  [[nodiscard]] bool is_idle() const override { return work_->done == work_->submitted; }
  void synchronize() override {
    ++waits_;
    work_->run_until(work_->submitted);
  }

 private:
  class Recording;
  /// What was submitted: as with a GPU, others may wait for it when its stream is gone.
  struct Work {
    std::deque<std::function<void()>> queue;
    std::size_t submitted = 0;
    std::size_t done = 0;

    void run_until(std::size_t count);
  };

  bool run_at_once_;
  std::atomic<std::int64_t>& waits_;
  DeferredStream* other_ = nullptr;
  std::shared_ptr<Work> work_ = std::make_shared<Work>();
  Recording* recording_ = nullptr;
};

/// A device whose memory may not be touched by the host except through copies (host_memory is
/// false) and whose queues are DeferredStreams. Tests read its memory after a synchronisation.
class DeferredDevice final : public Device {
 public:
  DeferredDevice(const Kernels& kernels, Schedule schedule);

  [[nodiscard]] const DeviceProperties& properties() const noexcept override { return properties_; }
  [[nodiscard]] const Kernels& kernels() const noexcept override { return kernels_; }
  [[nodiscard]] Buffer allocate(std::size_t bytes) override;
  [[nodiscard]] Buffer allocate_host(std::size_t bytes) override;
  [[nodiscard]] std::unique_ptr<Stream> create_stream() override;
  [[nodiscard]] std::unique_ptr<Stream> create_copy_stream() override;
  /// Queues that create_stream made.
  [[nodiscard]] int num_op_streams() const noexcept { return num_op_streams_; }
  [[nodiscard]] std::size_t allocated_bytes() const noexcept override { return device_bytes_; }
  /// @param handle a DeferredStream*.
  [[nodiscard]] std::unique_ptr<Stream> adopt_stream(int, void* handle) override {
    return std::make_unique<DeferredStream>(*static_cast<DeferredStream*>(handle));
  }
  [[nodiscard]] bool reach(const Device&) override { return false; }
  [[nodiscard]] bool is_memory_of(const void*, int) const override { return true; }
  [[nodiscard]] std::int64_t host_waits() const noexcept override { return waits_; }
  [[nodiscard]] std::size_t host_bytes() const noexcept { return host_bytes_; }
  /// From now on allocations that would exceed this many bytes of device memory fail.
  void set_limit(std::size_t bytes) noexcept { limit_bytes_ = bytes; }
  /// Lets `count` more allocations of either memory succeed, fails the next one, and all after it
  /// succeed again.
  void fail_once_after(int count) noexcept { until_failure_ = count; }

 private:
  /// @throws Error(kOutOfMemory) if it is the turn of this allocation.
  void fail_if_due(std::size_t bytes);

  const Kernels& kernels_;
  Schedule schedule_;
  DeviceProperties properties_;
  int num_op_streams_ = 0;
  std::size_t limit_bytes_ = std::numeric_limits<std::size_t>::max();
  int until_failure_ = -1;  // negative: none is due
  std::atomic<std::int64_t> waits_ = 0;
  std::size_t device_bytes_ = 0;
  std::size_t host_bytes_ = 0;
};

}  // namespace fovea::test
