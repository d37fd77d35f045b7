// Rows on their way from a GPU to memory of the caller on GPUs.
#include "engine/replicas/row_delivery.h"

#include "core/row_dtype.h"
#include "rows/row_blocks.h"

namespace fovea {

void RowDelivery::attach(const CallerStream& stream) {
  caller_.reset();
  if (stream.device != CallerStream::kNone) {
    caller_ = device_.adopt_stream(stream.device, stream.handle);
  }
}

Stream& RowDelivery::queue(std::size_t slot) {
  Queue& queue = queues_[slot];
  if (!queue.stream) queue.stream = device_.create_copy_stream();
  return *queue.stream;
}

void RowDelivery::deliver(std::size_t slot, std::span<const TensorView> rows,
                          std::span<const RowSink> sinks, RowDType dtype) {
  Stream& reader = queue(slot);
  if (caller_ && !queues_[slot].is_used) reader.wait_for(*caller_);  // the tower did not
  queues_[slot].is_used = true;
  for (std::size_t i = 0; i < sinks.size(); ++i) {
    Embedding& result = *sinks[i].result;
    result.rows = rows[i].shape[0];
    result.width = rows[i].shape[1];
    result.dtype = sinks[i].dtype.value_or(dtype);
    reader.copy_rows(copy_to_block(packed_rows(rows[i]), *sinks[i].to));
  }
}

void RowDelivery::wait(std::size_t slot) {
  const Queue& queue = queues_[slot];
  if (queue.stream && !queue.stream->is_idle()) queue.stream->synchronize();
}

void RowDelivery::finish() {
  for (Queue& queue : queues_) {
    if (!queue.is_used) continue;
    if (caller_) {
      caller_->wait_for(*queue.stream);
    } else {
      queue.stream->synchronize();
    }
    queue.is_used = false;
  }
  caller_.reset();
}

void RowDelivery::abandon() noexcept {
  for (std::size_t slot = 0; slot < queues_.size(); ++slot) {
    try {
      wait(slot);
    } catch (...) {  // NOLINT: the caller has a failure to report already
    }
    queues_[slot].is_used = false;
  }
  caller_.reset();
}

}  // namespace fovea
