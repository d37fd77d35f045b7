#pragma once

// Products of attention in vectors: two integers of 16 bits lie side by side in a lane. Include
// only from the unit of an instruction set; body.h says what V and the members mean. Besides what
// it lists there, V has
//   broadcast_pair(p)   two integers of 16 bits for every lane
//   store_shorts(p, a)  kWidth integers of 16 bits, rounded to nearest even

#include "ops/cpu/attention/int16/quantize.h"

namespace fovea::cpu {

/// Scores of kTileRows keys before the scale of the queries; `max` is raised by them.
template <class V, int kVectors>
[[gnu::noinline]] void score_tile16(const float* keys, const float* key_scale, const float* queries,
                                    std::int64_t pairs, float* scores, typename V::Reg* max) {
  using Reg = typename V::Reg;
  using Int = typename V::Int;
  constexpr int kRows = V::kTileRows;
  Int acc[kRows][kVectors];
  for (int r = 0; r < kRows; ++r) {
    for (int c = 0; c < kVectors; ++c) acc[r][c] = V::zero();
  }
  for (std::int64_t pair = 0; pair < pairs; ++pair) {
    Int q[kVectors];
    for (int c = 0; c < kVectors; ++c) q[c] = V::load_int(queries + c * V::kWidth);
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r) {
      const Int k = V::broadcast_int(keys + r * pairs);
      for (int c = 0; c < kVectors; ++c) acc[r][c] = V::dot_int16(acc[r][c], k, q[c]);
    }
    keys += 1;
    queries += kVectors * V::kWidth;
  }
  Reg top[kVectors];  // its address is not known to what stores scores
  for (int c = 0; c < kVectors; ++c) top[c] = max[c];
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r) {
    const Reg scale = V::broadcast(key_scale[r]);
    for (int c = 0; c < kVectors; ++c) {
      const Reg score = V::mul(V::to_float(acc[r][c]), scale);
      V::store(scores + (r * kVectors + c) * V::kWidth, score);
      top[c] = V::max(top[c], score);
    }
  }
  for (int c = 0; c < kVectors; ++c) max[c] = top[c];
}

/// out[d][lane] = before * out[d][lane] + block * scale[d] * sum_key values[key][d] * p[key][lane]
/// for kTileRows components d. The first block of keys starts from zero.
template <class V, int kVectors>
[[gnu::noinline]] void value_tile16(const float* values, const float* scale, const float* p,
                                    std::int64_t pairs, bool first,
                                    const StepWeights<V, kVectors>& weights, float* out) {
  using Int = typename V::Int;
  constexpr int kRows = V::kTileRows;
  Int acc[kRows][kVectors];
  for (int r = 0; r < kRows; ++r) {
    for (int c = 0; c < kVectors; ++c) acc[r][c] = V::zero();
  }
  for (std::int64_t pair = 0; pair < pairs; ++pair) {
    Int weight[kVectors];
    for (int c = 0; c < kVectors; ++c) weight[c] = V::load_int(p + c * V::kWidth);
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r) {
      const Int v = V::broadcast_int(values + r);
      for (int c = 0; c < kVectors; ++c) acc[r][c] = V::dot_int16(acc[r][c], v, weight[c]);
    }
    values += kRows;
    p += kVectors * V::kWidth;
  }
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r) {
    for (int c = 0; c < kVectors; ++c) {
      add_values<V>(acc[r][c], scale[r], first, weights.before[c], weights.block[c],
                    out + (r * kVectors + c) * V::kWidth);
    }
  }
}

template <class V>
class PairProducts {
 public:
  using Reg = typename V::Reg;
  using Int = typename V::Int;
  static constexpr std::int64_t kKeyRows = V::kTileRows;
  static constexpr std::int64_t kGroupKeys = 2;

  explicit PairProducts(std::int64_t head_dim) : head_dim_(head_dim) {}

  // Rows are [head_dim / 2] pairs, packed queries [head_dim / 2][lanes], values panels of
  // kTileRows components, [kKeyBlock / 2][kTileRows].
  [[nodiscard]] std::int64_t row_floats() const { return head_dim_ / 2; }
  [[nodiscard]] std::int64_t query_floats() const { return head_dim_ / 2; }
  [[nodiscard]] std::int64_t value_floats() const { return head_dim_ / V::kTileRows * kPanel; }

  static void store_part(float* row, std::int64_t d, Reg y) { V::store_shorts(row + d / 2, y); }

  void pack_queries(float* rows, std::int64_t count, float* to, std::int64_t lanes) const {
    const std::int64_t pairs = head_dim_ / 2;
    for (std::int64_t i = count * pairs; i < V::kWidth * pairs; ++i) rows[i] = 0.0f;
    for (std::int64_t c = 0; c < pairs; c += V::kWidth) {
      Reg block[V::kWidth];
      load_block<V>(rows + c, pairs, V::kWidth, pairs - c, block);
      V::transpose(block);
      for (int i = 0; i < V::kWidth && c + i < pairs; ++i) V::store(to + (c + i) * lanes, block[i]);
    }
  }

  /// Zeros for a key that does not exist.
  void pack_values(const float* from, std::int64_t stride, std::int64_t count, const float* steps,
                   float* to) const {
    constexpr int kRows = V::kTileRows;
    for (std::int64_t key = 0; key < count; key += 2) {
      const float* const row = from + key * stride;
      for (std::int64_t d = 0; d < head_dim_; d += V::kWidth) {
        const Reg factor = V::load(steps + d);
        const Reg first = V::mul(load_part<V>(row + d, head_dim_ - d), factor);
        const Reg second = key + 1 < count
                               ? V::mul(load_part<V>(row + stride + d, head_dim_ - d), factor)
                               : V::broadcast(0.0f);
        float pairs[V::kWidth];
        V::store_int(pairs, V::pair(first, second));
        for (int part = 0; part < V::kWidth && d + part < head_dim_; part += kRows) {
          __builtin_memcpy(to + (d + part) / kRows * kPanel + key / 2 * kRows, pairs + part,
                           kRows * sizeof(float));
        }
      }
    }
  }

  template <int kVectors>
  void scores(const float* keys, const float* key_scale, const float* queries, std::int64_t count,
              float* scores, Reg (&max)[kVectors]) const {
    const std::int64_t pairs = head_dim_ / 2;
    for (std::int64_t key = 0; key < count; key += kKeyRows) {
      score_tile16<V, kVectors>(keys + key * pairs, key_scale + key, queries, pairs,
                                scores + key * kVectors * V::kWidth, max);
    }
  }

  /// Pairs of keys, [kKeyBlock / 2][lanes].
  template <int kVectors>
  static void store_weights(float* weights, std::int64_t group, int c, const Int (&pair)[1]) {
    V::store_int(weights + (group * kVectors + c) * V::kWidth, pair[0]);
  }
  template <int kVectors>
  static void complete_weights(float*, std::int64_t) {}

  template <int kVectors>
  void values(const float* values, const float* scale, const float* weights, std::int64_t groups,
              bool first, const StepWeights<V, kVectors>& factors, float* out) const {
    for (std::int64_t d = 0; d < head_dim_; d += V::kTileRows) {
      value_tile16<V, kVectors>(values + d / V::kTileRows * kPanel, scale + d, weights, groups,
                                first, factors, out + d * kVectors * V::kWidth);
    }
  }

 private:
  static constexpr std::int64_t kPanel = kKeyBlock / 2 * V::kTileRows + 16;

  std::int64_t head_dim_;
};

}  // namespace fovea::cpu
