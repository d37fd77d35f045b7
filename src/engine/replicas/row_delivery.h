#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <span>

#include "engine/replicas/row_sink.h"
#include "fovea/row_block.h"
#include "fovea/tower/core/tensor_view.h"
#include "fovea/tower/device/device.h"

namespace fovea {

/// Takes rows from two row memories of a GPU, or of its encoder cache, to blocks of the caller on
/// GPUs, without the host:
///
///     stream of the caller --waits--> queue of the row memory --copies--> block
///     compute queue        --waits-->                         --waits--> stream of the caller
///
/// Each row memory has a queue of its own, which whoever writes to the memory again lets its work
/// wait for (GraphManager::execute, `reader`): rows of the next batch are computed while the
/// caller's stream has not come to those of this one. Not thread-safe.
class RowDelivery {
 public:
  /// In place of a row memory: rows of the cache, which wait for no tower, and none for them.
  static constexpr std::size_t kCached = 2;

  /// `device` must outlive this object.
  explicit RowDelivery(Device& device) noexcept : device_(device) {}
  RowDelivery(const RowDelivery&) = delete;
  RowDelivery& operator=(const RowDelivery&) = delete;
  /// Waits for all copies.
  ~RowDelivery() { abandon(); }

  /// The copies to come are ordered with this stream, until finish().
  /// @throws Error(kInvalidArgument) as Device::adopt_stream.
  void attach(const CallerStream& stream);
  /// What reads a row memory. The stream of the caller does not hold up what waits for it now.
  [[nodiscard]] Stream& queue(std::size_t slot);
  /// Submits copies of rows[i], in the row memory `slot`, behind what its queue waits for, and
  /// fills in rows, width and dtype of the results.
  /// @param sinks all of them on GPUs.
  void deliver(std::size_t slot, std::span<const TensorView> rows, std::span<const RowSink> sinks,
               RowDType dtype);
  /// Returns when nothing reads the row memory.
  void wait(std::size_t slot);

  /// Makes the stream of the caller wait for all copies; without one waits itself.
  void finish();
  /// Returns when nothing writes to blocks any more.
  void abandon() noexcept;

 private:
  struct Queue {
    std::unique_ptr<Stream> stream;
    bool is_used = false;  // since attach()
  };

  Device& device_;
  std::unique_ptr<Stream> caller_;
  std::array<Queue, 3> queues_;
};

}  // namespace fovea
