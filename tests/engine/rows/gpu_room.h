#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <vector>

#include "core/row_dtype.h"
#include "fovea/embedding.h"
#include "fovea/tower/device/device.h"
#include "rows/row_target.h"

namespace fovea::test {

/// Memory of a caller on a GPU, every byte of it marked.
class GpuRoom {
 public:
  GpuRoom(Device& device, int gpu, std::int64_t rows, std::int64_t width, RowDType dtype,
          std::int64_t gap = 0)
      : width_(width) {
    const auto row = width * static_cast<std::int64_t>(size_of(to_dtype(dtype)));
    buffer_ = device.allocate(static_cast<std::size_t>(rows * (row + gap)));
    block_ = {.data = buffer_.data(),
              .device = gpu,
              .dtype = dtype,
              .row_stride_bytes = gap == 0 ? 0 : row + gap,
              .rows = rows};
    const std::vector<unsigned char> marks(buffer_.bytes(), kMark);
    const auto stream = device.create_copy_stream();
    stream->copy(buffer_.data(), reinterpret_cast<const std::byte*>(marks.data()), marks.size());
    stream->synchronize();
  }

  [[nodiscard]] const RowBlock& block() const { return block_; }
  /// What is here when `stream` has passed all that it holds.
  [[nodiscard]] std::vector<unsigned char> read(Stream& stream) const {
    std::vector<unsigned char> bytes(buffer_.bytes());
    stream.copy(reinterpret_cast<std::byte*>(bytes.data()), buffer_.data(), bytes.size());
    stream.synchronize();
    return bytes;
  }
  void expect_rows(const Embedding& expected, Stream& stream) const {
    std::vector<unsigned char> whole(buffer_.bytes(), kMark);
    const std::size_t stride = stride_of(block_, width_);
    const std::size_t row_bytes =
        static_cast<std::size_t>(width_) * size_of(to_dtype(expected.dtype));
    for (std::size_t row = 0; row < static_cast<std::size_t>(expected.rows); ++row) {
      std::memcpy(whole.data() + row * stride, expected.data.data() + row * row_bytes, row_bytes);
    }
    EXPECT_TRUE(read(stream) == whole) << expected.name;
  }

 private:
  static constexpr unsigned char kMark = 0xAB;

  std::int64_t width_;
  Buffer buffer_;
  RowBlock block_;
};

}  // namespace fovea::test
