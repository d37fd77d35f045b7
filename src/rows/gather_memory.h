#pragma once

#include <cstddef>
#include <memory>

#include "device/recent_need.h"
#include "fovea/tower/device/device.h"

namespace fovea {

/// Memory on a device in which ranks gather their rows, kept from call to call. Grows to the
/// largest call; shrinks when 32 calls have needed less than half of it. One call at a time uses
/// it.
class GatherMemory {
 public:
  GatherMemory() = default;
  GatherMemory(const GatherMemory&) = delete;
  GatherMemory& operator=(const GatherMemory&) = delete;
  /// Waits for whoever uses it.
  ~GatherMemory() { wait(); }

  /// At least `bytes` on `device`, which must outlive this object. Work that is submitted to
  /// `stream` from now on waits for the uses so far, on the device; the host waits for them where
  /// memory must be replaced.
  /// @throws Error(kOutOfMemory), Error(kDevice).
  [[nodiscard]] std::byte* reserve(Device& device, std::size_t bytes, Stream& stream);
  /// What was submitted to `stream` so far uses the memory.
  void add_uses(Stream& stream) noexcept;

 private:
  void wait() noexcept;

  Device* device_ = nullptr;  // of the memory
  Buffer buffer_;
  RecentNeed recent_;
  std::unique_ptr<Stream> uses_;  // waits for them; nothing else is on it
};

}  // namespace fovea
