#pragma once

#include <memory>

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
  RowHandover(const RowHandover&) = delete;
  RowHandover& operator=(const RowHandover&) = delete;
  /// Waits for what it has submitted, unless finish() was called.
  ~RowHandover();

  /// Fills in rows, width, dtype and data of a result from a block.
  void fetch(const RowBlock& block, std::int64_t width, RowDType dtype, Embedding& result);
  /// Copies a block of a GPU to one on a GPU.
  void copy(const RowBlock& from, std::int64_t width, const RowBlock& to);
  /// Copies the data of a result to a block of the same dtype, and drops it in finish().
  void store(Embedding& result, const RowBlock& to);

  /// The rows are there; on GPUs, with a stream, what the caller puts on it finds them there.
  void finish();

 private:
  [[nodiscard]] Stream& queue();

  Device& device_;
  const CallerStream& stream_;
  std::unique_ptr<Stream> caller_;  // of a stream that is used
  std::unique_ptr<Stream> queue_;   // null: all work so far was on the host
  bool reads_host_ = false;         // what it reads goes when the call returns
};

}  // namespace fovea
