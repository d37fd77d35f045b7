#pragma once

#include <cstddef>
#include <memory>

#include "device/recent_need.h"
#include "fovea/tower/device/device.h"

namespace fovea {

/// Memory on a device for the rows of one batch, or of one call of several ranks, after the other.
/// Grows to the largest; shrinks when 32 have needed less than half of it. One thread at a time
/// uses it.
class BatchMemory {
 public:
  BatchMemory() = default;
  BatchMemory(const BatchMemory&) = delete;
  BatchMemory& operator=(const BatchMemory&) = delete;
  /// Waits for those who read it.
  ~BatchMemory();

  /// The queue of those who read the rows: who writes others in their place waits for it.
  [[nodiscard]] Stream& readers(Device& device);

  /// At least `bytes` on `device`, which must outlive this object: zeroed, or with rows of an
  /// earlier batch.
  /// @param is_ordered what is written there waits for readers() on the device, if that queue has
  /// been asked for; else the host waits now, as it does where memory must be replaced.
  /// @throws Error(kOutOfMemory), Error(kDevice).
  [[nodiscard]] std::byte* reserve(Device& device, std::size_t bytes, bool is_ordered);

 private:
  void wait() const;
  /// Gives up what was made for another device.
  void use(Device& device);

  Device* device_ = nullptr;  // of what follows
  std::unique_ptr<Stream> readers_;
  Buffer buffer_;
  RecentNeed recent_;
};

}  // namespace fovea
