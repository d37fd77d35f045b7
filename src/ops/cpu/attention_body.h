#pragma once

// Streaming-softmax attention of one task, written once for all instruction sets. Include after one
// simd_<isa>.h; every function is a template over its local type.
//
// Lanes are queries: scores are computed transposed, S^T = K Q^T, and so is the output,
// O^T = V^T P^T. Maximum, sum and rescaling are then plain vector operations without any reduction
// across lanes, K and V enter as broadcast scalars, and every query is a chain of operations of its
// own: keys ascending in blocks of kKeyBlock, so its bits depend on nothing but its sequence.
//
// Scratch (L2): queries and outputs transposed, [strip][head_dim][strip queries]; one block of keys
// in panels [key / kTileRows][head_dim][kTileRows], of values [head_dim /
// kTileRows][key][kTileRows]; scores of one strip against one block, [key][strip queries] (L1). A
// strip is at most kTileVectors vectors of queries.
//
// Scores are in units of log2: queries are scaled by scale * log2(e) first, then
//   m' = max(m, max_j s_j), a = 2^(m - m'), p_j = 2^(s_j - m'), l' = a l + sum_j p_j,
//   O' = a O + sum_j p_j v_j, and at the end O / l.
// Source: Milakov and Gimelshein, "Online normalizer calculation for softmax", 2018.

#include <cstdint>

#include "ops/cpu/vector_kernels.h"

namespace fovea::cpu {

/// 2^x for x <= 127: 0 below 2^-126 or so, NaN for NaN. x = n + f with |f| <= 1/2; 2^f by the
/// polynomial of degree 6 with least relative error and value 1 at 0. Relative error < 2e-7.
template <class V>
typename V::Reg exp2(typename V::Reg x) {
  x = V::max(V::broadcast(-200.0f), x);  // this order keeps NaN
  const typename V::Reg n = V::round(x);
  const typename V::Reg f = V::sub(x, n);
  typename V::Reg p = V::broadcast(1.5594678e-4f);
  p = V::fma(p, f, V::broadcast(1.3406643e-3f));
  p = V::fma(p, f, V::broadcast(9.6176928e-3f));
  p = V::fma(p, f, V::broadcast(5.5503104e-2f));
  p = V::fma(p, f, V::broadcast(2.4022652e-1f));
  p = V::fma(p, f, V::broadcast(6.9314724e-1f));
  p = V::fma(p, f, V::broadcast(1.0f));
  return V::scale(p, n);
}

template <class V>
void exp2_array(const float* x, float* y, std::int64_t count) {
  for (std::int64_t i = 0; i < count; i += V::kWidth) {
    const std::int64_t left = count - i < V::kWidth ? count - i : V::kWidth;
    V::store_some(y + i, exp2<V>(V::load_some(x + i, left)), left);
  }
}

/// Places of the scratch memory of a task.
template <class V>
struct AttentionScratch {
  float* queries;  // [strip][head_dim][lanes of the strip]
  float* out;      // the same shape
  float* keys;     // [kKeyBlock / kTileRows][head_dim][kTileRows]
  float* values;   // [head_dim / kTileRows][kKeyBlock][kTileRows]
  float* scores;   // [kKeyBlock][lanes of the strip]
  float* max;      // [queries]
  float* sum;      // [queries]
};

template <class V>
AttentionScratch<V> carve(float* memory, std::int64_t head_dim) {
  AttentionScratch<V> s;
  s.queries = memory;
  s.out = s.queries + kMaxTaskQueries * head_dim;
  s.keys = s.out + kMaxTaskQueries * head_dim;
  s.values = s.keys + kKeyBlock * head_dim;
  s.scores = s.values + kKeyBlock * head_dim;
  s.max = s.scores + kKeyBlock * kMaxStripLanes;
  s.sum = s.max + kMaxTaskQueries;
  return s;
}

/// to[d][lane] = scale * from[lane][d]; lanes without a query get 0.
template <class V>
void transpose_queries(const float* from, std::int64_t stride, std::int64_t count,
                       std::int64_t lanes, std::int64_t head_dim, float scale, float* to) {
  for (std::int64_t lane = 0; lane < lanes; ++lane) {
    for (std::int64_t d = 0; d < head_dim; ++d)
      to[d * lanes + lane] = lane < count ? scale * from[lane * stride + d] : 0.0f;
  }
}

/// Keys of one block, kTileRows side by side; the last panel is filled up with zeros.
template <class V>
void pack_keys(const float* from, std::int64_t stride, std::int64_t count, std::int64_t head_dim,
               float* to) {
  constexpr int kRows = V::kTileRows;
  for (std::int64_t first = 0; first < count; first += kRows, to += head_dim * kRows) {
    for (std::int64_t r = 0; r < kRows; ++r) {
      for (std::int64_t d = 0; d < head_dim; ++d)
        to[d * kRows + r] = first + r < count ? from[(first + r) * stride + d] : 0.0f;
    }
  }
}

template <class V>
void pack_values(const float* from, std::int64_t stride, std::int64_t count, std::int64_t head_dim,
                 float* to) {
  constexpr int kRows = V::kTileRows;
  for (std::int64_t d = 0; d < head_dim; d += kRows, to += kKeyBlock * kRows) {
    for (std::int64_t key = 0; key < count; ++key) {
      for (int r = 0; r < kRows; ++r) to[key * kRows + r] = from[key * stride + d + r];
    }
  }
}

/// Scores of kTileRows keys for kVectors vectors of queries; `max` is raised by the first `live`.
template <class V, int kVectors>
void score_tile(const float* keys, const float* queries, std::int64_t head_dim, std::int64_t live,
                float* scores, typename V::Reg* max) {
  constexpr int kRows = V::kTileRows;
  typename V::Reg acc[kRows][kVectors];
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 4
    for (int c = 0; c < kVectors; ++c) acc[r][c] = V::broadcast(0.0f);
  }
  for (std::int64_t d = 0; d < head_dim; ++d) {
    typename V::Reg q[kVectors];
#pragma GCC unroll 4
    for (int c = 0; c < kVectors; ++c) q[c] = V::load(queries + c * V::kWidth);
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r) {
      const typename V::Reg k = V::broadcast(keys[r]);
#pragma GCC unroll 4
      for (int c = 0; c < kVectors; ++c) acc[r][c] = V::fma(k, q[c], acc[r][c]);
    }
    keys += kRows;
    queries += kVectors * V::kWidth;
  }
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 4
    for (int c = 0; c < kVectors; ++c) {
      V::store(scores + (r * kVectors + c) * V::kWidth, acc[r][c]);
      if (r < live) max[c] = V::max(max[c], acc[r][c]);
    }
  }
}

/// out[d][lane] = rescale[lane] * out[d][lane] + sum_key values[key][d] * p[key][lane] for
/// kTileRows components d. The first block of keys starts from zero: scratch holds no numbers yet.
template <class V, int kVectors>
void value_tile(const float* values, const float* p, std::int64_t num_keys, bool first,
                const typename V::Reg* rescale, float* out) {
  constexpr int kRows = V::kTileRows;
  typename V::Reg acc[kRows][kVectors];
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 4
    for (int c = 0; c < kVectors; ++c)
      acc[r][c] = first ? V::broadcast(0.0f)
                        : V::mul(rescale[c], V::load(out + (r * kVectors + c) * V::kWidth));
  }
  for (std::int64_t key = 0; key < num_keys; ++key) {
    typename V::Reg weight[kVectors];
#pragma GCC unroll 4
    for (int c = 0; c < kVectors; ++c) weight[c] = V::load(p + c * V::kWidth);
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r) {
      const typename V::Reg v = V::broadcast(values[r]);
#pragma GCC unroll 4
      for (int c = 0; c < kVectors; ++c) acc[r][c] = V::fma(v, weight[c], acc[r][c]);
    }
    values += kRows;
    p += kVectors * V::kWidth;
  }
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 4
    for (int c = 0; c < kVectors; ++c) V::store(out + (r * kVectors + c) * V::kWidth, acc[r][c]);
  }
}

/// One step of the streaming softmax: one strip of queries against one packed block of keys.
/// `max` and `sum` are those of the strip.
template <class V, int kVectors>
void strip_step(const AttentionScratch<V>& s, const float* queries, float* out, float* max,
                float* sum, std::int64_t num_keys, std::int64_t head_dim, bool first) {
  using Reg = typename V::Reg;
  constexpr int kRows = V::kTileRows;
  constexpr std::int64_t kLanes = kVectors * V::kWidth;
  Reg old_max[kVectors];
  Reg new_max[kVectors];
  for (int c = 0; c < kVectors; ++c) new_max[c] = old_max[c] = V::load(max + c * V::kWidth);
  for (std::int64_t key = 0; key < num_keys; key += kRows) {
    score_tile<V, kVectors>(s.keys + key * head_dim, queries, head_dim, num_keys - key,
                            s.scores + key * kLanes, new_max);
  }
  Reg rescale[kVectors];
  Reg total[kVectors];
  for (int c = 0; c < kVectors; ++c) {
    rescale[c] = exp2<V>(V::sub(old_max[c], new_max[c]));
    total[c] = V::mul(rescale[c], V::load(sum + c * V::kWidth));
  }
  for (std::int64_t key = 0; key < num_keys; ++key) {
    for (int c = 0; c < kVectors; ++c) {
      float* const at = s.scores + key * kLanes + c * V::kWidth;
      const Reg p = exp2<V>(V::sub(V::load(at), new_max[c]));
      total[c] = V::add(total[c], p);
      V::store(at, p);
    }
  }
  for (int c = 0; c < kVectors; ++c) {
    V::store(max + c * V::kWidth, new_max[c]);
    V::store(sum + c * V::kWidth, total[c]);
  }
  for (std::int64_t d = 0; d < head_dim; d += kRows) {
    value_tile<V, kVectors>(s.values + d * kKeyBlock, s.scores, num_keys, first, rescale,
                            out + d * kLanes);
  }
}

/// out[lane][d] = from[d][lane] / sum[lane]
template <class V>
void write_out(const float* from, const float* sum, std::int64_t count, std::int64_t lanes,
               std::int64_t head_dim, float* out, std::int64_t stride) {
  for (std::int64_t lane = 0; lane < count; ++lane) {
    for (std::int64_t d = 0; d < head_dim; ++d)
      out[lane * stride + d] = from[d * lanes + lane] / sum[lane];
  }
}

template <class V>
void attention_task(const AttentionTask& task) {
  constexpr float kLog2E = 1.44269504f;
  const std::int64_t head_dim = task.head_dim;
  const AttentionScratch<V> s = carve<V>(task.scratch, head_dim);
  // Strips of nearly equal width, in whole vectors.
  const std::int64_t vectors = (task.num_queries + V::kWidth - 1) / V::kWidth;
  const std::int64_t strips = (vectors + V::kTileVectors - 1) / V::kTileVectors;
  const auto first_lane = [&](std::int64_t strip) { return strip * vectors / strips * V::kWidth; };

  for (std::int64_t strip = 0; strip < strips; ++strip) {
    const std::int64_t lane = first_lane(strip);
    const std::int64_t lanes = first_lane(strip + 1) - lane;
    transpose_queries<V>(task.q + lane * task.stride, task.stride, task.num_queries - lane, lanes,
                         head_dim, task.scale * kLog2E, s.queries + lane * head_dim);
  }
  for (std::int64_t lane = 0; lane < vectors * V::kWidth; ++lane) {
    s.max[lane] = -__builtin_inff();
    s.sum[lane] = 0.0f;
  }
  for (std::int64_t key = 0; key < task.num_keys; key += kKeyBlock) {
    const std::int64_t num_keys = task.num_keys - key < kKeyBlock ? task.num_keys - key : kKeyBlock;
    pack_keys<V>(task.k + key * task.stride, task.stride, num_keys, head_dim, s.keys);
    pack_values<V>(task.v + key * task.stride, task.stride, num_keys, head_dim, s.values);
    for (std::int64_t strip = 0; strip < strips; ++strip) {
      const std::int64_t lane = first_lane(strip);
      static_assert(V::kTileVectors == 3);
      const std::int64_t width = (first_lane(strip + 1) - lane) / V::kWidth;
      const auto step = width == 3   ? &strip_step<V, 3>
                        : width == 2 ? &strip_step<V, 2>
                                     : &strip_step<V, 1>;
      step(s, s.queries + lane * head_dim, s.out + lane * head_dim, s.max + lane, s.sum + lane,
           num_keys, head_dim, key == 0);
    }
  }
  for (std::int64_t strip = 0; strip < strips; ++strip) {
    const std::int64_t lane = first_lane(strip);
    write_out<V>(
        s.out + lane * head_dim, s.sum + lane,
        task.num_queries - lane < first_lane(strip + 1) - lane ? task.num_queries - lane
                                                               : first_lane(strip + 1) - lane,
        first_lane(strip + 1) - lane, head_dim, task.out + lane * task.out_stride, task.out_stride);
  }
}

}  // namespace fovea::cpu
