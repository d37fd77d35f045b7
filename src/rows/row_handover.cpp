// Finished rows to memory of the caller.
#include "rows/row_handover.h"

#include "core/row_dtype.h"
#include "rows/row_blocks.h"

namespace fovea {

RowHandover::~RowHandover() {
  try {
    if (queue_) queue_->synchronize();
  } catch (...) {  // NOLINT: the caller has a failure to report already
  }
}

Stream& RowHandover::queue() {
  if (!queue_) {
    std::unique_ptr<Stream> made = device_.create_copy_stream();
    for (const CallerStream& stream : {stream_, source_}) {
      if (stream.device == CallerStream::kNone) continue;
      callers_.push_back(device_.adopt_stream(stream.device, stream.handle));
      made->wait_for(*callers_.back());
    }
    queue_ = std::move(made);
  }
  return *queue_;
}

void RowHandover::fetch(const RowBlock& block, std::int64_t width, RowDType dtype,
                        Embedding& result) {
  result.rows = block.rows;
  result.width = width;
  result.dtype = dtype;
  const auto count = static_cast<std::size_t>(block.rows * width);
  result.data.resize(count * size_of(to_dtype(dtype)));
  RowCopy copy = rows_of_block(block, width);
  RowBytes fetched;
  if (block.device != RowBlock::kHost && block.rows > 0) {
    fetched.resize(count * size_of(copy.from_dtype));
    copy.to = fetched.data();
    copy.to_dtype = copy.from_dtype;
    copy.to_stride = copy.to_row_bytes();
    queue().copy_rows(copy);
    queue().synchronize();
    copy.from = fetched.data();
    copy.from_stride = copy.from_row_bytes();
  }
  copy.to = result.data.data();
  copy.to_dtype = to_dtype(dtype);
  copy.to_stride = copy.to_row_bytes();
  copy_rows(copy);
}

void RowHandover::copy(const RowBlock& from, std::int64_t width, const RowBlock& to) {
  if (from.rows == 0) return;
  queue().copy_rows(copy_to_block(rows_of_block(from, width), to));
  uses_host_ |= from.device == RowBlock::kHost || to.device == RowBlock::kHost;
}

void RowHandover::store(Embedding& result, const RowBlock& to) {
  if (result.rows == 0) return;
  const RowCopy copy = copy_to_block(
      packed_rows({result.data.data(), to_dtype(result.dtype), {result.rows, result.width}}), to);
  if (to.device == RowBlock::kHost) {
    copy_rows(copy);
    return;
  }
  queue().copy_rows(copy);
  uses_host_ = true;
}

void RowHandover::finish() {
  if (!queue_) return;
  if (uses_host_ || stream_.device == CallerStream::kNone) queue_->synchronize();
  for (const auto& caller : callers_) caller->wait_for(*queue_);
  queue_.reset();
  callers_.clear();
  uses_host_ = false;
}

}  // namespace fovea
