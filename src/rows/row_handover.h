#pragma once

#include <memory>
#include <vector>

#include "fovea/embedding.h"
#include "fovea/row_block.h"
#include "fovea/tower/core/row_copy.h"
#include "fovea/tower/device/device.h"

namespace fovea {

/// Takes rows that exist already to where a call wants them: those that came with the call, and
/// those that had to pass through host memory. Work on GPUs is ordered with the stream of the
/// caller; a call that has none of it makes no queue. Not thread-safe.
class RowHandover {
 public:
  /// Both must outlive this object. @param device any of the engine.
  RowHandover(Device& device, const CallerStream& stream) noexcept
      : device_(device), stream_(stream) {}
  /// As above for rows that are there when the stream `source` of the caller has come to them. It
  /// waits for the copies, too.
  RowHandover(Device& device, const CallerStream& stream, const CallerStream& source) noexcept
      : device_(device), stream_(stream), source_(source) {}
  RowHandover(const RowHandover&) = delete;
  RowHandover& operator=(const RowHandover&) = delete;
  /// Waits for what it has submitted, unless finish() was called.
  ~RowHandover();

  /// Fills in rows, width, dtype and data of a result from a block.
  void fetch(const RowBlock& block, std::int64_t width, RowDType dtype, Embedding& result);
  /// Copies a block to one of the same dtype, or from GPU to GPU.
  void copy(const RowBlock& from, std::int64_t width, const RowBlock& to);
  /// Copies the data of a result to a block of the same dtype, and drops it in finish().
  void store(Embedding& result, const RowBlock& to);

  /// The rows are there; on GPUs, with a stream, what the caller puts on it finds them there.
  void finish();

 private:
  [[nodiscard]] Stream& queue();

  Device& device_;
  CallerStream stream_;
  CallerStream source_;
  std::vector<std::unique_ptr<Stream>> callers_;  // streams of the caller, once there is a queue
  std::unique_ptr<Stream> queue_;                 // null: all work so far was on the host
  bool uses_host_ = false;                        // memory that goes, or is read, after the call
};

}  // namespace fovea
