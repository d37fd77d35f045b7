#pragma once

// Streaming-softmax attention of one task, written once for all instruction sets. Include after one
// simd/<isa>.h; every function is a template over its local type.
//
// Lanes are queries: scores are computed transposed, S^T = K Q^T, and so is the output,
// O^T = V^T P^T. Maximum, sum and rescaling are then plain vector operations without any reduction
// across lanes, K and V enter as broadcast scalars, and every query is a chain of operations of its
// own: keys ascending in blocks of kKeyBlock, so its bits depend on nothing but its sequence.
//
// The queries of a task are cut into strips of at most kTileVectors vectors. For every block of
// keys the task copies K and V into the order in which they are broadcast, then computes for each
// strip:
//   scores of the strip (L1) from its queries and the keys, tile by tile of kTileRows keys,
//   the new maximum, the exponentials, the sum,
//   the outputs of the strip from the scores and the values, tile by tile of kTileRows components.
//
// Scores are in units of log2: queries are scaled by scale * log2(e) first, then
//   m' = max(m, max_j s_j), a = 2^(m - m'), p_j = 2^(s_j - m'), l' = a l + sum_j p_j,
//   O' = a O + sum_j p_j v_j, and at the end O / l.
// Source: Milakov and Gimelshein, "Online normalizer calculation for softmax", arXiv:1805.02867.

#include <cstdint>

#include "ops/cpu/attention/grid_body.h"
#include "ops/cpu/attention/packing.h"
#include "ops/cpu/attention/task.h"

namespace fovea::cpu {

/// 2^x for x <= 127: 0 below 2^-126 or so and for -infinity, NaN for NaN. x = n + f with |f| <=
/// 1/2; 2^f by the polynomial of degree 6 with least relative error and value 1 at 0. Relative
/// error < 2e-7.
template <class V>
typename V::Reg exp2(typename V::Reg x) {
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

/// Bias of one strip against a grid of keys.
struct StripBias {
  const float* table;  // [rows + cols][lanes]; null: no bias
  std::int64_t rows;
  std::int64_t cols;
};

/// scores[r] = bias of key `key` + r of the grid.
template <class V, int kVectors>
void start_from_bias(const StripBias& bias, std::int64_t key,
                     typename V::Reg (&scores)[V::kTileRows][kVectors]) {
  constexpr std::int64_t kLanes = kVectors * V::kWidth;
  std::int64_t row = key / bias.cols;
  std::int64_t col = key % bias.cols;
  for (int r = 0; r < V::kTileRows; ++r) {
    // Keys beyond the grid are not used, and have no row in the table.
    const float* const by_row = bias.table + (row < bias.rows ? row : 0) * kLanes;
    const float* const by_col = bias.table + (bias.rows + col) * kLanes;
    for (int c = 0; c < kVectors; ++c)
      scores[r][c] = V::add(V::load(by_row + c * V::kWidth), V::load(by_col + c * V::kWidth));
    if (++col == bias.cols) {
      col = 0;
      ++row;
    }
  }
}

/// Scores of kTileRows keys, the first of which is number `key` of the sequence, for kVectors
/// vectors of queries; `max` is raised by the first `live`.
template <class V, int kVectors>
void score_tile(const float* keys, const float* queries, std::int64_t head_dim, std::int64_t key,
                std::int64_t live, const StripBias& bias, float* scores, typename V::Reg* max) {
  using Reg = typename V::Reg;
  constexpr int kRows = V::kTileRows;
  Reg acc[kRows][kVectors];
  if (bias.table != nullptr) {
    start_from_bias<V, kVectors>(bias, key, acc);
  } else {
    for (int r = 0; r < kRows; ++r) {
      for (int c = 0; c < kVectors; ++c) acc[r][c] = V::broadcast(0.0f);
    }
  }
  for (std::int64_t d = 0; d < head_dim; ++d) {
    Reg q[kVectors];
    for (int c = 0; c < kVectors; ++c) q[c] = V::load(queries + c * V::kWidth);
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r) {
      const Reg k = V::broadcast(keys[r]);
      for (int c = 0; c < kVectors; ++c) acc[r][c] = V::fma(k, q[c], acc[r][c]);
    }
    keys += V::kWidth;
    queries += kVectors * V::kWidth;
  }
  for (int r = 0; r < kRows; ++r) {
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
  using Reg = typename V::Reg;
  constexpr int kRows = V::kTileRows;
  Reg acc[kRows][kVectors];
  for (int r = 0; r < kRows; ++r) {
    for (int c = 0; c < kVectors; ++c) {
      acc[r][c] = first ? V::broadcast(0.0f)
                        : V::mul(rescale[c], V::load(out + (r * kVectors + c) * V::kWidth));
    }
  }
  for (std::int64_t key = 0; key < num_keys; ++key) {
    Reg weight[kVectors];
    for (int c = 0; c < kVectors; ++c) weight[c] = V::load(p + c * V::kWidth);
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r) {
      const Reg v = V::broadcast(values[r]);
      for (int c = 0; c < kVectors; ++c) acc[r][c] = V::fma(v, weight[c], acc[r][c]);
    }
    values += kRows;
    p += kVectors * V::kWidth;
  }
  for (int r = 0; r < kRows; ++r) {
    for (int c = 0; c < kVectors; ++c) V::store(out + (r * kVectors + c) * V::kWidth, acc[r][c]);
  }
}

/// The packed block of keys that a task is at: keys [first, first + count) of the sequence.
struct KeyBlock {
  std::int64_t first;
  std::int64_t count;
};

/// Keys of a block that the lanes of a strip see.
struct SeenKeys {
  std::int64_t all_lanes;         // so many first ones are seen by every lane
  float of_lane[kMaxStripLanes];  // so many by each; there are none of them where all see all
};

/// @param lane first one of the strip in its task.
template <class V>
SeenKeys seen_keys(const AttentionTask& task, std::int64_t lane, std::int64_t lanes,
                   const KeyBlock& block) {
  const auto count = [&](std::int64_t i) {  // from nothing to the whole block
    const std::int64_t before = task.first_query + i + 1;
    const std::int64_t keys = (task.prefix_keys > before ? task.prefix_keys : before) - block.first;
    return keys < 0 ? 0 : keys < block.count ? keys : block.count;
  };
  SeenKeys seen;
  seen.all_lanes = count(lane);
  if (seen.all_lanes == block.count) return seen;
  for (std::int64_t i = 0; i < lanes; ++i) seen.of_lane[i] = static_cast<float>(count(lane + i));
  return seen;
}

/// Gives keys that a lane does not see a score of -infinity.
/// @param max raised by the scores that remain.
template <class V, int kVectors>
void hide_keys(const SeenKeys& seen, std::int64_t count, float* scores, typename V::Reg* max) {
  using Reg = typename V::Reg;
  constexpr std::int64_t kLanes = kVectors * V::kWidth;
  const Reg hidden = V::broadcast(-__builtin_inff());
  for (std::int64_t key = 0; key < count; ++key) {
    const Reg place = V::broadcast(static_cast<float>(key) + 0.5f);
    for (int c = 0; c < kVectors; ++c) {
      float* const at = scores + key * kLanes + c * V::kWidth;
      const Reg left = V::sub(V::load(seen.of_lane + c * V::kWidth), place);
      const Reg score = V::where_negative(left, hidden, V::load(at));
      V::store(at, score);
      max[c] = V::max(max[c], score);
    }
  }
}

/// One step of the streaming softmax: the strip whose first lane is `lane` of its task against one
/// block of keys.
/// @param seen by the strip.
/// @param ahead this strip's part of the next block, fetched between its tiles of scores. (Inlined
///   into its caller, it takes 1.3 times as long with AVX2: g++ 12 keeps accumulators in memory.)
template <class V, int kVectors>
[[gnu::noinline]] void strip_step(const AttentionScratch<V>& s, std::int64_t lane,
                                  const KeyBlock& block, std::int64_t head_dim,
                                  const StripBias& bias, const SeenKeys& seen, RowsAhead<V> ahead) {
  using Reg = typename V::Reg;
  constexpr std::int64_t kLanes = kVectors * V::kWidth;
  Reg old_max[kVectors];
  Reg max[kVectors];
  for (int c = 0; c < kVectors; ++c) max[c] = old_max[c] = V::load(s.max + lane + c * V::kWidth);
  for (std::int64_t key = 0; key < block.count; key += V::kTileRows) {
    const float* const panel = s.keys + key / V::kWidth * V::kWidth * head_dim;
    ahead.prefetch(head_dim);
    score_tile<V, kVectors>(panel + key % V::kWidth, s.queries + lane * head_dim, head_dim,
                            block.first + key, block.count - key, bias, s.scores + key * kLanes,
                            max);
  }
  if (seen.all_lanes < block.count) {
    for (int c = 0; c < kVectors; ++c) max[c] = old_max[c];
    hide_keys<V, kVectors>(seen, block.count, s.scores, max);
  }

  Reg rescale[kVectors];
  Reg sum[kVectors];
  for (int c = 0; c < kVectors; ++c) {
    rescale[c] = exp2<V>(V::sub(old_max[c], max[c]));
    sum[c] = V::mul(rescale[c], V::load(s.sum + lane + c * V::kWidth));
  }
  for (std::int64_t key = 0; key < block.count; ++key) {
    for (int c = 0; c < kVectors; ++c) {
      float* const score = s.scores + key * kLanes + c * V::kWidth;
      const Reg p = exp2<V>(V::sub(V::load(score), max[c]));
      sum[c] = V::add(sum[c], p);
      V::store(score, p);
    }
  }
  for (int c = 0; c < kVectors; ++c) {
    V::store(s.max + lane + c * V::kWidth, max[c]);
    V::store(s.sum + lane + c * V::kWidth, sum[c]);
  }

  const float* values = s.values;
  for (std::int64_t d = 0; d < head_dim; d += V::kTileRows) {
    value_tile<V, kVectors>(values, s.scores, block.count, block.first == 0, rescale,
                            s.out + lane * head_dim + d * kLanes);
    values += AttentionScratch<V>::kValuePanel;
  }
}

/// out[q][d] = from[d][q] / sum[q] for the queries q of one strip that exist.
template <class V>
void write_strip(const float* from, const float* sum, std::int64_t lanes, std::int64_t queries,
                 std::int64_t head_dim, float* out, std::int64_t stride) {
  for (std::int64_t lane = 0; lane < lanes; lane += V::kWidth) {
    const typename V::Reg factor = V::div(V::broadcast(1.0f), V::load(sum + lane));
    for (std::int64_t d = 0; d < head_dim; d += V::kWidth) {
      const std::int64_t count = head_dim - d < V::kWidth ? head_dim - d : V::kWidth;
      typename V::Reg block[V::kWidth];
      load_block<V>(from + d * lanes + lane, lanes, head_dim - d, V::kWidth, block);
#pragma GCC unroll 16
      for (int i = 0; i < V::kWidth; ++i) block[i] = V::mul(factor, block[i]);
      V::transpose(block);
      for (int i = 0; i < V::kWidth && lane + i < queries; ++i)
        V::store_some(out + (lane + i) * stride + d, block[i], count);
    }
  }
}

/// Calls body(first lane, lanes) for strips of nearly equal width that cover the queries of a task.
template <class V, class F>
void for_strips(std::int64_t num_queries, const F& body) {
  const std::int64_t vectors = (num_queries + V::kWidth - 1) / V::kWidth;
  const std::int64_t strips = (vectors + V::kTileVectors - 1) / V::kTileVectors;
  for (std::int64_t strip = 0; strip < strips; ++strip) {
    const std::int64_t begin = strip * vectors / strips;
    const std::int64_t end = (strip + 1) * vectors / strips;
    body(begin * V::kWidth, (end - begin) * V::kWidth);
  }
}

/// Calls body<vectors>() for a strip of so many lanes.
template <class V, class F>
void with_vectors(std::int64_t lanes, const F& body) {
  static_assert(V::kTileVectors == 3);
  switch (lanes / V::kWidth) {
    case 3: return body.template operator()<3>();
    case 2: return body.template operator()<2>();
    default: return body.template operator()<1>();
  }
}

/// One task, the same for all kinds of attention.
/// @tparam Method made for the task, with
///   V, kPrefetches            how often step() prefetches
///   pack_queries(lane, lanes) of a strip
///   pack_keys(k, v, block)    of a block, with its values
///   step(lane, lanes, block, ahead)    a strip against the block that was packed last
///   strip_out(lane)           outputs of the strip that begins there, [head_dim][its lanes]
///   s                         has sum
template <class Method>
void attend(const AttentionTask& task) {
  using V = typename Method::V;
  const std::int64_t head_dim = task.head_dim;
  const std::int64_t stride = task.stride;
  Method method(task);
  for_strips<V>(task.num_queries,
                [&](std::int64_t lane, std::int64_t lanes) { method.pack_queries(lane, lanes); });
  for (std::int64_t key = 0; key < task.num_keys; key += kKeyBlock) {
    const std::int64_t left = task.num_keys - key;
    const KeyBlock block{key, left < kKeyBlock ? left : kKeyBlock};
    const float* const k = task.k + key * stride;
    const float* const v = task.v + key * stride;
    method.pack_keys(k, v, block);
    const std::int64_t rest = left - block.count;
    const std::int64_t next = rest < kKeyBlock ? rest : kKeyBlock;
    for_strips<V>(task.num_queries, [&](std::int64_t lane, std::int64_t lanes) {
      const std::int64_t begin = next * lane / task.num_queries;
      const std::int64_t end = next * (lane + lanes) / task.num_queries;
      const std::int64_t first = (kKeyBlock + begin) * stride;
      const RowsAhead<V> ahead(k + first, v + first, stride, end - begin, Method::kPrefetches);
      method.step(lane, lanes, block, ahead);
    });
  }
  for_strips<V>(task.num_queries, [&](std::int64_t lane, std::int64_t lanes) {
    write_strip<V>(method.strip_out(lane), method.s.sum + lane, lanes, task.num_queries - lane,
                   head_dim, task.out + lane * task.out_stride, task.out_stride);
  });
}

/// Attention in f32, a Method of attend().
template <class Vector>
struct FloatAttention {
  using V = Vector;
  static constexpr std::int64_t kPrefetches = kKeyBlock / V::kTileRows;

  explicit FloatAttention(const AttentionTask& of)
      : task(of),
        bias_entries(of.bias_rows + of.bias_cols),
        parts(of.scratch),
        s(parts, of.head_dim, whole_vectors<V>(of.num_queries), bias_entries) {}

  void pack_queries(std::int64_t lane, std::int64_t lanes) {
    constexpr float kLog2E = 1.44269504f;
    for (std::int64_t q = lane; q < lane + lanes; q += V::kWidth) {
      const std::int64_t left = task.num_queries - q;
      transpose_rows<V>(task.q + q * task.q_stride, task.q_stride, left, task.head_dim,
                        task.scale * kLog2E, s.queries + lane * task.head_dim + (q - lane), lanes);
      if (task.bias != nullptr) {
        transpose_rows<V>(task.bias + q * bias_entries, bias_entries, left, bias_entries, kLog2E,
                          s.bias + lane * bias_entries + (q - lane), lanes);
      }
      V::store(s.max + q, V::broadcast(-__builtin_inff()));
      V::store(s.sum + q, V::broadcast(0.0f));
    }
  }
  void pack_keys(const float* k, const float* v, const KeyBlock& block) {
    cpu::pack_keys<V>(k, task.stride, block.count, task.head_dim, s.keys);
    pack_values<V>(v, task.stride, block.count, task.head_dim, s.values);
  }
  void step(std::int64_t lane, std::int64_t lanes, const KeyBlock& block,
            const RowsAhead<V>& ahead) {
    const StripBias bias{task.bias == nullptr ? nullptr : s.bias + lane * bias_entries,
                         task.bias_rows, task.bias_cols};
    const SeenKeys seen = seen_keys<V>(task, lane, lanes, block);
    with_vectors<V>(lanes, [&]<int kVectors>() {
      strip_step<V, kVectors>(s, lane, block, task.head_dim, bias, seen, ahead);
    });
  }
  [[nodiscard]] const float* strip_out(std::int64_t lane) const {
    return s.out + lane * task.head_dim;
  }

  const AttentionTask& task;
  std::int64_t bias_entries;
  ScratchParts<V> parts;
  AttentionScratch<V> s;
};

template <class V>
std::int64_t attention_scratch_floats(std::int64_t head_dim, std::int64_t queries,
                                      std::int64_t bias_entries) {
  ScratchParts<V> parts(nullptr);
  const AttentionScratch<V> s(parts, head_dim, whole_vectors<V>(queries), bias_entries);
  static_cast<void>(s);
  return parts.floats();
}

template <class V>
constexpr AttentionKernel attention_kernel(const char* name) {
  return {.name = name,
          .run = &attend<FloatAttention<V>>,
          .scratch_floats = &attention_scratch_floats<V>,
          .task_components = 57024,  // 8 bytes each: a query and its output
          .grid_bias = &grid_bias<V>,
          .exp2 = &exp2_array<V>};
}

}  // namespace fovea::cpu
