#pragma once

#include <cstddef>
#include <memory>

#include "core/thread_pool.h"
#include "fovea/tower/device/arena.h"
#include "fovea/tower/device/device.h"
#include "fovea/tower/ops/context.h"

namespace fovea {

/// The queues of one device on which sub-batches run one after the other. All memory that a lane's
/// runs use is reused from run to run, which their order on `compute` makes safe.
class Lane {
 public:
  /// `device` must outlive the lane.
  explicit Lane(Device& device);

  [[nodiscard]] Device& device() const noexcept { return device_; }
  [[nodiscard]] Stream& compute() const noexcept { return *compute_; }
  /// Uploads; the compute queue itself where device memory is host memory.
  [[nodiscard]] Stream& copy() const noexcept { return copy_ ? *copy_ : *compute_; }
  /// The queue of ExecContext::side; the compute queue itself on such a device.
  [[nodiscard]] Stream& side() const noexcept { return side_ ? *side_ : *compute_; }

  /// The context with which a forward, and the work after it, is submitted.
  /// @param arena must outlive the result. @param is_recorded as ExecContext::is_recorded.
  [[nodiscard]] ExecContext context(Arena& arena, bool is_recorded = false) const noexcept;

  /// Threads that fill input blocks with the caller; null where device memory is host memory.
  [[nodiscard]] ThreadPool* copiers() const noexcept { return copiers_.get(); }

  /// Replaces `buffer` by one of at least `bytes` zeroed bytes if it is smaller. Waits for all work
  /// first, because work in flight may use the old memory.
  void grow(Buffer& buffer, std::size_t bytes);
  /// Returns when everything submitted to the lane has run.
  void synchronize();

 private:
  Device& device_;
  std::unique_ptr<Stream> compute_;
  std::unique_ptr<Stream> copy_;
  std::unique_ptr<Stream> side_;
  std::unique_ptr<ThreadPool> copiers_;
};

}  // namespace fovea
