#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <span>
#include <vector>

#include "core/row_dtype.h"
#include "fovea/embedding.h"
#include "fovea/row_block.h"
#include "fovea/tower/core/dtype.h"

namespace fovea::test {

/// Host memory of a caller for rows, `gap` bytes between them, every byte of it marked.
class HostRoom {
 public:
  HostRoom(std::int64_t rows, std::int64_t width, RowDType dtype = RowDType::kFloat32,
           std::int64_t gap = 0)
      : row_bytes_(width * static_cast<std::int64_t>(size_of(to_dtype(dtype)))),
        memory_(static_cast<std::size_t>(rows * (row_bytes_ + gap)), kMark) {
    block_ = {.data = memory_.data(),
              .dtype = dtype,
              .row_stride_bytes = gap == 0 ? 0 : row_bytes_ + gap,
              .rows = rows};
  }

  HostRoom(const HostRoom& other)
      : row_bytes_(other.row_bytes_), memory_(other.memory_), block_(other.block_) {
    block_.data = memory_.data();
  }
  HostRoom(HostRoom&&) = default;

  [[nodiscard]] const RowBlock& block() const { return block_; }
  [[nodiscard]] bool is_untouched() const {
    return std::ranges::all_of(memory_, [](std::byte byte) { return byte == kMark; });
  }
  /// Whether the rows of `expected`, of the same dtype, are here, and nothing else was written.
  void expect_rows(const Embedding& expected) const {
    const auto stride = static_cast<std::size_t>(
        block_.row_stride_bytes == 0 ? row_bytes_ : block_.row_stride_bytes);
    const auto bytes = static_cast<std::size_t>(row_bytes_);
    ASSERT_EQ(expected.data.size(), static_cast<std::size_t>(expected.rows) * bytes);
    std::vector<std::byte> whole(memory_.size(), kMark);
    for (std::size_t row = 0; row < static_cast<std::size_t>(expected.rows); ++row) {
      std::memcpy(whole.data() + row * stride, expected.data.data() + row * bytes, bytes);
    }
    EXPECT_TRUE(memory_ == whole) << expected.name;
  }

 private:
  static constexpr std::byte kMark{0xAB};

  std::int64_t row_bytes_;
  std::vector<std::byte> memory_;
  RowBlock block_;
};

/// One room per item, as large as its rows and `spare` more.
inline std::vector<HostRoom> rooms_for(std::span<const Embedding> items, RowDType dtype,
                                       std::int64_t gap = 0, std::int64_t spare = 0) {
  std::vector<HostRoom> rooms;
  for (const Embedding& item : items) rooms.emplace_back(item.rows + spare, item.width, dtype, gap);
  return rooms;
}

inline std::vector<RowBlock> blocks_of(std::span<const HostRoom> rooms) {
  std::vector<RowBlock> blocks;
  for (const HostRoom& room : rooms) blocks.push_back(room.block());
  return blocks;
}

/// What is known about an item besides its rows.
inline void expect_described(const Embedding& got, const Embedding& expected) {
  EXPECT_FALSE(got.error);
  EXPECT_TRUE(got.data.empty());
  EXPECT_EQ(got.name, expected.name);
  EXPECT_EQ(got.rows, expected.rows);
  EXPECT_EQ(got.width, expected.width);
  EXPECT_EQ(got.grid_thw, expected.grid_thw);
  EXPECT_EQ(got.retained, expected.retained);
  EXPECT_EQ(got.timestamps, expected.timestamps);
}

}  // namespace fovea::test
