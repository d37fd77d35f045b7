// Rows on their way from a device to the caller. Fresh memory of the caller costs a page fault
// every 4 KiB, which takes longer than the copy: hence the threads, and no pass over it but the
// last.
#include "engine/replicas/row_download.h"

#include <algorithm>
#include <new>
#include <utility>

#include "core/check.h"
#include "core/row_dtype.h"
#include "core/stopwatch.h"
#include "rows/row_blocks.h"

namespace fovea {

namespace {

constexpr std::int64_t kPieceElements = std::int64_t{1} << 17;
constexpr std::size_t kStagingBytes = std::size_t{16} << 20;
constexpr int kMostThreads = 8;  // more find no bandwidth left

int num_threads(const Device& device) {
  return device.properties().host_memory ? 1 : std::min(kMostThreads, available_cpus());
}

void allocate(Embedding& result, std::size_t bytes) {
  try {
    result.data.resize(bytes);
  } catch (const std::bad_alloc&) {
    throw Error(ErrorCode::kOutOfMemory,
                cat(result.name, ": no memory for the ", bytes, " bytes of its rows"));
  }
}

/// Fills in the result of a sink but for its rows, and makes room for them.
RowCopy prepare(const TensorView& rows, RowDType dtype, const RowSink& sink) {
  Embedding& result = *sink.result;
  result.rows = rows.shape[0];
  result.width = rows.shape[1];
  result.dtype = sink.dtype.value_or(dtype);
  RowCopy copy = packed_rows(rows);
  if (sink.to != nullptr) return copy_to_block(copy, *sink.to);
  copy.to_dtype = to_dtype(result.dtype);
  copy.to_stride = copy.to_row_bytes();
  allocate(result, static_cast<std::size_t>(copy.rows) * copy.to_stride);
  copy.to = result.data.data();
  return copy;
}

/// Cuts a copy into pieces of whole rows.
void append_pieces(const RowCopy& copy, std::vector<RowCopy>& pieces) {
  if (copy.width == 0) return;
  const std::int64_t rows = std::max<std::int64_t>(1, kPieceElements / copy.width);
  for (std::int64_t at = 0; at < copy.rows; at += rows) {
    RowCopy piece = copy;
    piece.from += static_cast<std::size_t>(at) * copy.from_stride;
    piece.to += static_cast<std::size_t>(at) * copy.to_stride;
    piece.rows = std::min(rows, copy.rows - at);
    pieces.push_back(piece);
  }
}

/// Of rows that lie one after the other on the device.
std::size_t from_bytes(const RowCopy& piece) {
  return static_cast<std::size_t>(piece.rows) * piece.from_stride;
}

}  // namespace

RowDownload::RowDownload(Device& device)
    : on_host_(device.properties().host_memory), pool_(num_threads(device)) {
  if (on_host_) return;
  stream_ = device.create_copy_stream();
  for (Buffer& buffer : staging_) buffer = device.allocate_host(kStagingBytes);
}

void RowDownload::begin(std::span<const TensorView> rows, RowDType dtype,
                        std::span<const RowSink> out) {
  finish();
  if (on_host_) {
    run(rows, dtype, out);
    return;
  }
  running_ = std::async(std::launch::async,
                        [this, rows = std::vector(rows.begin(), rows.end()), dtype,
                         out = std::vector(out.begin(), out.end())] { run(rows, dtype, out); });
}

void RowDownload::finish() {
  if (running_.valid()) running_.get();
}

void RowDownload::run(std::span<const TensorView> rows, RowDType dtype,
                      std::span<const RowSink> out) {
  if (rows.empty()) return;
  const Stopwatch watch;
  std::int64_t total_rows = 0;
  std::vector<RowCopy> pieces;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const RowCopy copy = prepare(rows[i], dtype, out[i]);
    total_rows += copy.rows;
    append_pieces(copy, pieces);
  }
  if (on_host_) {
    convert(pieces, pieces.empty() ? nullptr : pieces.front().from);
  } else {
    stage_and_convert(pieces);
  }
  const double output_ms = watch.elapsed_ms();
  for (const RowSink& sink : out) {
    const double share =
        total_rows == 0 ? 0
                        : static_cast<double>(sink.result->rows) / static_cast<double>(total_rows);
    sink.result->times.output_ms = output_ms * share;
  }
}

/// Converts pieces that lie in `memory` as they lie on the device.
void RowDownload::convert(std::span<const RowCopy> pieces, const std::byte* memory) {
  pool_.parallel_for(std::ssize(pieces), [&](std::int64_t task, int) {
    RowCopy piece = pieces[static_cast<std::size_t>(task)];
    piece.from = memory + (piece.from - pieces.front().from);
    copy_rows(piece);
  });
}

void RowDownload::stage_and_convert(std::span<const RowCopy> pieces) {
  std::size_t next = 0;
  // Submits the copy of as many pieces as lie one after the other and fit into a buffer.
  const auto submit = [&](std::size_t slot) {
    const std::size_t first = next;
    std::size_t bytes = 0;
    while (next < pieces.size() && pieces[next].from == pieces[first].from + bytes &&
           bytes + from_bytes(pieces[next]) <= kStagingBytes) {
      bytes += from_bytes(pieces[next++]);
    }
    if (bytes > 0) stream_->copy(staging_[slot].data(), pieces[first].from, bytes);
    return pieces.subspan(first, next - first);
  };
  std::size_t slot = 0;
  for (std::span<const RowCopy> here = submit(slot); !here.empty(); slot ^= 1) {
    stream_->synchronize();
    const std::span<const RowCopy> following = submit(slot ^ 1);
    convert(here, staging_[slot].data());
    here = following;
  }
}

}  // namespace fovea
