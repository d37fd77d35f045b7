#pragma once

#include <memory>
#include <mutex>
#include <vector>

#include "fovea/tower/device/device.h"

namespace fovea {

/// A point that a queue has come to, as a queue of its own that waits for it and does nothing else:
/// it is idle when the point has passed, and other queues, or the host, wait for it.
using RowMark = std::shared_ptr<Stream>;

/// Marks on the queues of one device. One that has passed and that nobody has any more is used
/// again. Thread-safe.
class RowMarks {
 public:
  /// `device` must outlive this object and its marks.
  explicit RowMarks(Device& device) noexcept : device_(device) {}

  /// Where `queue` is now: behind all that was submitted to it.
  [[nodiscard]] RowMark after(Stream& queue);

 private:
  Device& device_;
  std::mutex mutex_;
  std::vector<RowMark> all_;
};

}  // namespace fovea
