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

namespace fovea {

namespace {

constexpr std::size_t kPieceElements = std::size_t{1} << 17;
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

}  // namespace

RowDownload::RowDownload(Device& device)
    : on_host_(device.properties().host_memory), pool_(num_threads(device)) {
  if (on_host_) return;
  stream_ = device.create_copy_stream();
  for (Buffer& buffer : staging_) buffer = device.allocate_host(kStagingBytes);
}

void RowDownload::begin(std::span<const TensorView> rows, RowDType dtype,
                        std::span<Embedding* const> out) {
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
                      std::span<Embedding* const> out) {
  if (rows.empty()) return;
  const Stopwatch watch;
  const Formats formats{.from = rows.front().dtype, .to = dtype};
  std::int64_t total_rows = 0;
  std::vector<Piece> pieces;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    Embedding& result = *out[i];
    result.rows = rows[i].shape[0];
    result.width = rows[i].shape[1];
    result.dtype = dtype;
    total_rows += result.rows;
    const auto count = static_cast<std::size_t>(rows[i].shape.elements());
    allocate(result, count * size_of(to_dtype(dtype)));
    for (std::size_t at = 0; at < count; at += kPieceElements) {
      pieces.push_back({.from = rows[i].data + at * size_of(formats.from),
                        .to = result.data.data() + at * size_of(to_dtype(dtype)),
                        .count = std::min(kPieceElements, count - at)});
    }
  }
  if (on_host_) {
    convert(pieces, formats, pieces.empty() ? nullptr : pieces.front().from);
  } else {
    stage_and_convert(pieces, formats);
  }
  const double output_ms = watch.elapsed_ms();
  for (Embedding* const result : out) {
    const double share =
        total_rows == 0 ? 0 : static_cast<double>(result->rows) / static_cast<double>(total_rows);
    result->times.output_ms = output_ms * share;
  }
}

/// Converts pieces that lie in `memory` as they lie on the device.
void RowDownload::convert(std::span<const Piece> pieces, const Formats& formats,
                          const std::byte* memory) {
  pool_.parallel_for(std::ssize(pieces), [&](std::int64_t task, int) {
    const Piece& piece = pieces[static_cast<std::size_t>(task)];
    convert_rows(formats.from, memory + (piece.from - pieces.front().from), formats.to, piece.to,
                 piece.count);
  });
}

void RowDownload::stage_and_convert(std::span<const Piece> pieces, const Formats& formats) {
  const std::size_t element = size_of(formats.from);
  std::size_t next = 0;
  // Submits the copy of as many pieces as fit into a buffer.
  const auto submit = [&](std::size_t slot) {
    const std::size_t first = next;
    std::size_t bytes = 0;
    while (next < pieces.size() && bytes + pieces[next].count * element <= kStagingBytes) {
      bytes += pieces[next++].count * element;
    }
    if (bytes > 0) stream_->copy(staging_[slot].data(), pieces[first].from, bytes);
    return pieces.subspan(first, next - first);
  };
  std::size_t slot = 0;
  for (std::span<const Piece> here = submit(slot); !here.empty(); slot ^= 1) {
    stream_->synchronize();
    const std::span<const Piece> following = submit(slot ^ 1);
    convert(here, formats, staging_[slot].data());
    here = following;
  }
}

}  // namespace fovea
