#pragma once

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "device/cpu/cpu_device.h"
#include "graph/deferred_device.h"
#include "ops/cpu/cpu_kernels.h"
#include "rows/row_cache.h"

namespace fovea::test {

/// Rows of an item "on a device", [rows, 4] of one value.
class TierRows {
 public:
  TierRows(std::int64_t rows, float value)
      : values_(static_cast<std::size_t>(rows * kWidth), value), rows_(rows) {}

  static constexpr std::int64_t kWidth = 4;
  static constexpr std::int64_t kRowBytes = kWidth * std::int64_t{sizeof(float)};

  [[nodiscard]] TensorView view() {
    return {reinterpret_cast<std::byte*>(values_.data()), DType::kF32, {rows_, kWidth}};
  }
  [[nodiscard]] bool are(float value) const {
    return std::ranges::all_of(values_, [=](float one) { return one == value; });
  }

 private:
  std::vector<float> values_;
  std::int64_t rows_;
};

/// Stores rows under a key that nobody has.
inline void store(RowCache& cache, const std::string& key, Device& device, Stream& queue,
                  const TensorView& rows) {
  RowCache::Claim claim = cache.claim(key);
  claim.describe(Embedding{.name = "encoded", .grid_thw = {{1, 2, 3}}});
  claim.store(device, queue, rows);
}

/// Submits a copy of the rows of a claim.
inline void copy(const RowCache::Claim& claim, const Device& device, Stream& queue,
                 const TensorView& out) {
  claim.slot().begin_read(queue);
  queue.copy(out.data, claim.rows().data, out.bytes());
  claim.slot().end_read(claim.mark(device, queue));
}

}  // namespace fovea::test
