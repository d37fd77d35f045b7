#pragma once

#include <array>
#include <cstddef>
#include <future>
#include <memory>
#include <span>
#include <vector>

#include "core/thread_pool.h"
#include "engine/replicas/row_sink.h"
#include "fovea/embedding.h"
#include "fovea/tower/core/tensor_view.h"
#include "fovea/tower/device/device.h"

namespace fovea {

/// Takes rows from a device to their sinks on the host, in two steps that overlap piece by piece,
/// while the device computes the next rows:
///   row memory --its own queue--> one of two pinned buffers --threads--> Embedding::data or block
/// Where the device computes in host memory there is only the second step, and nothing runs in the
/// background. Not thread-safe.
class RowDownload {
 public:
  /// `device` must outlive this object.
  explicit RowDownload(Device& device);
  RowDownload(const RowDownload&) = delete;
  RowDownload& operator=(const RowDownload&) = delete;

  /// Waits for the rows before, then starts to fill out[i] from rows[i]: rows, width, dtype, data
  /// or its block, and times.output_ms. What both spans refer to must stay until finish().
  /// @param rows finished, of one dtype. @param out sinks on the host.
  /// @throws as finish, for the rows before.
  void begin(std::span<const TensorView> rows, RowDType dtype, std::span<const RowSink> out);

  /// Returns when the rows last begun are there.
  /// @throws Error of the device, Error(kOutOfMemory); nothing is in flight then.
  void finish();

 private:
  void run(std::span<const TensorView> rows, RowDType dtype, std::span<const RowSink> out);
  void convert(std::span<const RowCopy> pieces, const std::byte* memory);
  void stage_and_convert(std::span<const RowCopy> pieces);

  bool on_host_;
  ThreadPool pool_;
  std::unique_ptr<Stream> stream_;
  std::array<Buffer, 2> staging_;
  std::future<void> running_;  // last: it ends before what it uses
};

}  // namespace fovea
