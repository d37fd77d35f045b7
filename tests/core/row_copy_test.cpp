// Copies of rows that change their distance and dtype.
#include "fovea/tower/core/row_copy.h"

#include <gtest/gtest.h>

#include <cstring>
#include <vector>

#include "core/row_dtype.h"

namespace fovea {
namespace {

std::vector<std::byte> marked(std::size_t bytes) {
  return std::vector<std::byte>(bytes, std::byte{0xAB});
}

/// Rows of 0, 1, 2, ... / 8 with `stride` bytes between their beginnings.
std::vector<std::byte> ramp(DType dtype, std::int64_t rows, std::int64_t width,
                            std::size_t stride) {
  std::vector<std::byte> bytes = marked(static_cast<std::size_t>(rows) * stride);
  float next = 0;
  for (std::int64_t row = 0; row < rows; ++row) {
    std::vector<float> values(static_cast<std::size_t>(width));
    for (float& value : values) value = next++ / 8;
    narrow_from_f32(values.data(), dtype, bytes.data() + static_cast<std::size_t>(row) * stride,
                    values.size());
  }
  return bytes;
}

TEST(CopyRows, ChangeDistanceAndDtypeAndTouchNothingElse) {
  constexpr std::int64_t kRows = 5;
  constexpr std::int64_t kWidth = 7;
  const DType dtypes[] = {DType::kF32, DType::kBF16, DType::kF16};
  for (const DType from : dtypes) {
    for (const DType to : dtypes) {
      for (const std::size_t gap : {0, 12}) {
        const std::size_t from_stride = kWidth * size_of(from) + 2 * gap;
        const std::size_t to_stride = kWidth * size_of(to) + gap;
        const std::vector<std::byte> source = ramp(from, kRows, kWidth, from_stride);
        std::vector<std::byte> out = marked(kRows * to_stride);
        copy_rows({.from = source.data(),
                   .from_dtype = from,
                   .from_stride = from_stride,
                   .to = out.data(),
                   .to_dtype = to,
                   .to_stride = to_stride,
                   .rows = kRows,
                   .width = kWidth});
        EXPECT_TRUE(out == ramp(to, kRows, kWidth, to_stride))
            << to_string(from) << " to " << to_string(to) << ", gap " << gap;
      }
    }
  }
}

TEST(CopyRows, NoRowsNeedNoMemory) {
  copy_rows({.rows = 0, .width = 4});
  copy_rows({.rows = 4, .width = 0});
}

}  // namespace
}  // namespace fovea
