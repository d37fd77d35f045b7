#pragma once

// The scratch of an attention task, and how queries, keys and values are copied into it. Include
// after one simd/<isa>.h; every function is a template over its local type.

#include <cstdint>

#include "ops/cpu/attention/task.h"

namespace fovea::cpu {

/// Hands out parts of the scratch of a task one after the other; without memory it counts them.
template <class V>
class ScratchParts {
 public:
  explicit ScratchParts(float* memory) : memory_(memory) {}

  float* take(std::int64_t floats) {
    float* const part = memory_ == nullptr ? nullptr : memory_ + used_;
    used_ += floats;
    return part;
  }
  /// Floats of all parts, in whole cache lines.
  [[nodiscard]] std::int64_t floats() const { return (used_ + 15) / 16 * 16; }

 private:
  float* memory_;
  std::int64_t used_ = 0;
};

/// Queries in whole vectors.
template <class V>
std::int64_t whole_vectors(std::int64_t queries) {
  return (queries + V::kWidth - 1) / V::kWidth * V::kWidth;
}

/// Scratch of one task. Panels of keys are kWidth keys wide, panels of values kTileRows components,
/// with 64 bytes between them so that neighbours do not compete for the same cache sets.
template <class V>
struct AttentionScratch {
  static constexpr std::int64_t kValuePanel = kKeyBlock * V::kTileRows + 16;

  /// @param lanes of the task: its queries in whole vectors.
  AttentionScratch(ScratchParts<V>& parts, std::int64_t head_dim, std::int64_t lanes,
                   std::int64_t bias_entries)
      : queries(parts.take(lanes * head_dim)),
        out(parts.take(lanes * head_dim)),
        keys(parts.take(kKeyBlock * head_dim)),
        values(parts.take(head_dim / V::kTileRows * kValuePanel)),
        scores(parts.take(kKeyBlock * kMaxStripLanes)),
        max(parts.take(lanes)),
        sum(parts.take(lanes)),
        bias(parts.take(lanes * bias_entries)) {}

  float* queries;  // [strip][head_dim][lanes of the strip]
  float* out;      // the same shape
  float* keys;     // [kKeyBlock / kWidth][head_dim][kWidth]
  float* values;   // [head_dim / kTileRows] panels of [kKeyBlock][kTileRows]
  float* scores;   // [kKeyBlock][lanes of the strip]
  float* max;      // [lanes of the task]
  float* sum;      // [lanes of the task]
  float* bias;     // [strip][bias_rows + bias_cols][lanes of the strip], in units of log2
};

template <class V>
typename V::Reg load_part(const float* from, std::int64_t count) {
  return count >= V::kWidth ? V::load(from) : V::load_some(from, count);
}

template <class V>
void store_part(float* to, typename V::Reg a, std::int64_t count) {
  if (count >= V::kWidth) {
    V::store(to, a);
  } else {
    V::store_some(to, a, count);
  }
}

/// Angles that many numbers further on, where there are any.
template <class V>
AttentionAngles angles_from(const AttentionAngles& angles, std::int64_t offset) {
  if (angles.cos == nullptr) return angles;
  return {angles.cos + offset, angles.sin + offset};
}

/// Rows of head_dim numbers.
struct AttentionRows {
  const float* x;
  std::int64_t stride;
  AttentionAngles angles;  ///< of the first row
};

/// Floats of a place that holds scores of a strip against a block of keys, and before them the rows
/// of rotated().
template <class V>
std::int64_t score_floats(std::int64_t head_dim) {
  const std::int64_t scores = kKeyBlock * kMaxStripLanes;
  const std::int64_t rows = V::kWidth * head_dim;
  return rows > scores ? rows : scores;
}

/// The rows with their angles applied, in `memory` where they have any.
/// @param count 1..kWidth
template <class V>
AttentionRows rotated(const AttentionRows& rows, std::int64_t count, std::int64_t head_dim,
                      float* memory) {
  using Reg = typename V::Reg;
  if (rows.angles.cos == nullptr) return rows;
  const std::int64_t half = head_dim / 2;
  for (std::int64_t r = 0; r < count; ++r) {
    const float* const x = rows.x + r * rows.stride;
    float* const to = memory + r * head_dim;
    for (std::int64_t j = 0; j < half; j += V::kWidth) {
      const std::int64_t left = half - j;
      const Reg a = load_part<V>(x + j, left);
      const Reg b = load_part<V>(x + half + j, left);
      const Reg c = load_part<V>(rows.angles.cos + r * half + j, left);
      const Reg s = load_part<V>(rows.angles.sin + r * half + j, left);
      store_part<V>(to + j, V::sub(V::mul(a, c), V::mul(b, s)), left);
      store_part<V>(to + half + j, V::fma(b, c, V::mul(a, s)), left);
    }
  }
  return {memory, head_dim, {nullptr, nullptr}};
}

/// A block of kWidth rows with `rows` rows and `cols` columns that exist; zeros elsewhere.
template <class V>
void load_block(const float* from, std::int64_t stride, std::int64_t rows, std::int64_t cols,
                typename V::Reg (&block)[V::kWidth]) {
  if (rows >= V::kWidth && cols >= V::kWidth) {
#pragma GCC unroll 16
    for (int r = 0; r < V::kWidth; ++r) block[r] = V::load(from + r * stride);
  } else {
    const std::int64_t count = cols < V::kWidth ? cols : V::kWidth;
    for (int r = 0; r < V::kWidth; ++r)
      block[r] = V::load_some(from + r * stride, r < rows ? count : 0);
  }
}

/// to[c][r] = factor * from[r][c] for kWidth rows r and all columns c; rows beyond `rows` are
/// zeros.
template <class V>
void transpose_rows(const float* from, std::int64_t stride, std::int64_t rows, std::int64_t cols,
                    float factor, float* to, std::int64_t to_stride) {
  const typename V::Reg scale = V::broadcast(factor);
  for (std::int64_t c = 0; c < cols; c += V::kWidth) {
    typename V::Reg block[V::kWidth];
    load_block<V>(from + c, stride, rows, cols - c, block);
    V::transpose(block);
#pragma GCC unroll 16
    for (int i = 0; i < V::kWidth; ++i) {
      if (c + i < cols) V::store(to + (c + i) * to_stride, V::mul(scale, block[i]));
    }
  }
}

template <class V>
void pack_keys(const float* from, std::int64_t stride, std::int64_t count, std::int64_t head_dim,
               float* to) {
  for (std::int64_t key = 0; key < count; key += V::kWidth) {
    transpose_rows<V>(from + key * stride, stride, count - key, head_dim, 1.0f, to + key * head_dim,
                      V::kWidth);
  }
}

template <class V>
void pack_values(const float* from, std::int64_t stride, std::int64_t count, std::int64_t head_dim,
                 float* to) {
  constexpr int kRows = V::kTileRows;
  for (std::int64_t key = 0; key < count; ++key) {
    float* panel = to + key * kRows;
    for (std::int64_t d = 0; d < head_dim; d += kRows, panel += AttentionScratch<V>::kValuePanel)
      __builtin_memcpy(panel, from + key * stride + d, kRows * sizeof(float));
  }
}

/// Prefetches rows that will be packed next: each lies in a page of its own, so the hardware
/// prefetchers do not find them.
template <class V>
void prefetch_rows(const float* from, std::int64_t stride, std::int64_t count,
                   std::int64_t head_dim) {
  constexpr std::int64_t kLine = 16;  // floats
  for (std::int64_t row = 0; row < count; ++row) {
    for (std::int64_t d = 0; d < head_dim + kLine - 1; d += kLine)
      __builtin_prefetch(from + row * stride + d, 0, 2);
  }
}

/// Keys and values that will be packed next, prefetched in equal parts between the steps of other
/// work: many lines at once would hold up its loads.
template <class V>
class RowsAhead {
 public:
  /// @param rows of keys, and as many of values. @param parts calls of prefetch() that take them.
  RowsAhead(const float* k, const float* v, std::int64_t stride, std::int64_t rows,
            std::int64_t parts)
      : k_(k), v_(v), stride_(stride), rows_(rows), part_((rows + parts - 1) / parts) {}

  void prefetch(std::int64_t head_dim) {
    const std::int64_t count = rows_ < part_ ? rows_ : part_;
    prefetch_rows<V>(k_, stride_, count, head_dim);
    prefetch_rows<V>(v_, stride_, count, head_dim);
    k_ += count * stride_;
    v_ += count * stride_;
    rows_ -= count;
  }

 private:
  const float* k_;
  const float* v_;
  std::int64_t stride_;
  std::int64_t rows_;
  std::int64_t part_;
};

}  // namespace fovea::cpu
