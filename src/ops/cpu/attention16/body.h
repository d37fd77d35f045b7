#pragma once

// Attention of one task in integers of 16 bits, written once for all instruction sets. Include only
// from a leaf, which defines a vector type V in an anonymous namespace.
//
// Strips, blocks of keys and the streaming softmax are those of ops/cpu/attention_body.h: lanes are
// queries, and a query's bits depend on nothing but its sequence. What is multiplied are integers,
// two of 16 bits side by side in a lane of 32 bits, and their sums are exact:
//   queries  one scale a row, integers up to R with head_dim * R^2 < 2^31
//   keys     the same
//   p        2^(s_j - m) of a block of keys in steps of 1 / kProbabilitySteps, m the largest score
//            of the block: a key that takes nearly all leaves their steps to keys of other blocks
//   values   one scale for each component and block of keys, integers up to kValueSteps
// The softmax sums the rounded p, so weights add up to 1, and a constant value comes out as it is.
//
// A row of queries with a NaN or infinity gives NaN, such a row of keys makes its whole sequence
// NaN, such a component of a value this component in its sequence. They enter as scales and sums of
// NaN; integers are never made of them.
//
// Besides the members of the vector types of ops/cpu/vector, V has integers of 32 bits:
//   Int, zero, load_int, store_int, to_float
//   ones()                every half 1
//   broadcast_pair(p)     two integers of 16 bits for every lane
//   dot(sum, a, b)        sum + a . b over the two halves of every lane
//   pair(first, second)   both rounded to nearest even, NaN to 0: the lower and the upper half
//   store_shorts(p, a)    kWidth integers of 16 bits, rounded likewise
//   with_larger_bits(a, b) of every lane, bits compared as an integer
// All leaves give the same bits: every operation on floats is the same one, with fma rounded once.
// A compiler must not contract operations of its own accord.

#include "ops/cpu/attention16/task.h"
#include "ops/cpu/attention_body.h"

namespace fovea::cpu {

/// Scratch of one task, attention16_scratch_floats.
template <class V>
struct Attention16Scratch {
  static constexpr std::int64_t kPairs = kKeyBlock / 2;
  static constexpr std::int64_t kValuePanel = kPairs * V::kTileRows + 16;
  static constexpr std::int64_t kSlack = 16;  // stores of whole vectors go beyond the last number

  /// @param lanes of the task: its queries in whole vectors.
  Attention16Scratch(float* memory, std::int64_t head_dim, std::int64_t lanes)
      : queries(memory),
        out(queries + lanes * head_dim / 2),
        keys(out + lanes * head_dim),
        values(keys + kKeyBlock * head_dim / 2 + kSlack),
        scores(values + head_dim / V::kTileRows * kValuePanel),
        max(scores + kKeyBlock * kMaxStripLanes),
        sum(max + lanes),
        query_scale(sum + lanes),
        key_scale(query_scale + lanes),
        value_scale(key_scale + kKeyBlock),
        value_steps(value_scale + head_dim + kSlack) {}

  // Pairs of integers count as one float.
  float* queries;      // pairs, [strip][head_dim / 2][lanes of the strip]
  float* out;          // [strip][head_dim][lanes of the strip]
  float* keys;         // pairs, [kKeyBlock][head_dim / 2]
  float* values;       // pairs, [head_dim / kTileRows] panels of [kPairs][kTileRows]
  float* scores;       // [kKeyBlock][lanes of the strip], then pairs, [kPairs][lanes of the strip]
  float* max;          // [lanes of the task]
  float* sum;          // [lanes of the task], in units of 1 / kProbabilitySteps
  float* query_scale;  // [lanes of the task]
  float* key_scale;    // [kKeyBlock]
  float* value_scale;  // [head_dim]
  float* value_steps;  // [head_dim]
};

/// Integers of kWidth rows from -steps to steps, and what a step is.
template <class V>
struct RowScales {
  typename V::Reg scale;   ///< finite
  typename V::Reg poison;  ///< NaN for a row with a NaN or infinity, whose integers mean nothing; 0
};

/// Numbers whose reciprocal is a float. A row of smaller ones counts as zeros.
inline constexpr float kSmallestScaled = 1e-30f;

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

/// y in [-steps, steps] where it is a number, and -steps, which can be converted, where it is NaN.
template <class V>
typename V::Reg drop_nan(typename V::Reg y, float steps) {
  return V::max(y, V::broadcast(-steps));
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

/// The bits of the largest magnitude of every row: those of an infinity or NaN are the largest.
template <class V>
typename V::Reg largest_of_rows(const AttentionRows& rows, std::int64_t count,
                                std::int64_t head_dim) {
  using Reg = typename V::Reg;
  Reg largest[V::kWidth];
  for (std::int64_t r = 0; r < V::kWidth; ++r) {
    largest[r] = V::broadcast(0.0f);
    if (r >= count) continue;
    const float* const x = rows.x + r * rows.stride;
    for (std::int64_t d = 0; d < head_dim; d += V::kWidth)
      largest[r] = V::with_larger_bits(largest[r], V::abs(load_part<V>(x + d, head_dim - d)));
  }
  V::transpose(largest);
  for (int rest = V::kWidth / 2; rest > 0; rest /= 2) {
    for (int r = 0; r < rest; ++r) largest[r] = V::with_larger_bits(largest[r], largest[r + rest]);
  }
  return largest[0];
}

/// What numbers of these largest magnitudes are divided by; 0 where one is not finite.
template <class V>
typename V::Reg finite_or_zero(typename V::Reg largest) {
  constexpr float kLargest = 3.40282347e38f;
  // Operands in this order take NaN for an infinity.
  const typename V::Reg bounded = V::min(largest, V::broadcast(__builtin_inff()));
  return V::where_negative(V::sub(V::broadcast(kLargest), bounded), V::broadcast(0.0f), largest);
}

/// Quantizes up to kWidth rows to integers of 16 bits, [count][head_dim]; rows beyond `count` have
/// a scale of 0. Stores whole vectors.
/// @param memory for kWidth rows.
template <class V>
RowScales<V> quantize_rows16(AttentionRows rows, std::int64_t count, std::int64_t head_dim,
                             float steps, float sign, float* memory, float* to) {
  using Reg = typename V::Reg;
  const Reg zero = V::broadcast(0.0f);
  rows = rotated<V>(rows, count, head_dim, memory);
  const Reg largest = largest_of_rows<V>(rows, count, head_dim);
  const Reg finite = finite_or_zero<V>(largest);
  const Reg is_small = V::sub(finite, V::broadcast(kSmallestScaled));
  const Reg reciprocal = V::div(V::broadcast(sign * steps), finite);
  float per_step[V::kWidth];
  V::store(per_step, V::where_negative(is_small, zero, reciprocal));
  for (std::int64_t r = 0; r < count; ++r) {
    const Reg factor = V::broadcast(per_step[r]);
    for (std::int64_t d = 0; d < head_dim; d += V::kWidth) {
      const Reg a = load_part<V>(rows.x + r * rows.stride + d, head_dim - d);
      V::store_shorts(to + (r * head_dim + d) / 2, drop_nan<V>(V::mul(a, factor), steps));
    }
  }
  return {V::where_negative(is_small, zero, V::div(finite, V::broadcast(steps))),
          V::sub(largest, largest)};
}

/// Quantizes kWidth queries, of which the first `count` exist, into lanes.
template <class V>
void pack_queries16(const AttentionTask& task, const Attention16Scratch<V>& s, std::int64_t query,
                    float steps, float* to, std::int64_t lanes) {
  constexpr float kLog2E = 1.44269504f;
  const std::int64_t pairs = task.head_dim / 2;
  const float sign = task.scale < 0.0f ? -1.0f : 1.0f;
  const std::int64_t left = task.num_queries - query;
  const std::int64_t count = left < V::kWidth ? left : V::kWidth;
  float* const rows = s.keys;  // not in use yet, nor are scores
  const AttentionRows queries{task.q + query * task.q_stride, task.q_stride,
                              angles_from<V>(task.q_angles, query * pairs)};
  const RowScales<V> scales =
      quantize_rows16<V>(queries, count, task.head_dim, steps, sign, s.scores, rows);
  for (std::int64_t i = count * pairs; i < V::kWidth * pairs; ++i) rows[i] = 0.0f;
  V::store(s.query_scale + query, V::mul(scales.scale, V::broadcast(sign * task.scale * kLog2E)));
  V::store(s.sum + query, scales.poison);
  V::store(s.max + query, V::broadcast(-__builtin_inff()));
  for (std::int64_t c = 0; c < pairs; c += V::kWidth) {
    typename V::Reg block[V::kWidth];
    load_block<V>(rows + c, pairs, V::kWidth, pairs - c, block);
    V::transpose(block);
    for (int i = 0; i < V::kWidth && c + i < pairs; ++i) V::store(to + (c + i) * lanes, block[i]);
  }
}

/// Quantizes a block of keys. @return NaN if one of them has a NaN or infinity, or 0.
template <class V>
float pack_keys16(const AttentionRows& rows, std::int64_t count, std::int64_t head_dim, float steps,
                  const Attention16Scratch<V>& s) {
  const std::int64_t pairs = head_dim / 2;
  typename V::Reg poison = V::broadcast(0.0f);
  for (std::int64_t first = 0; first < count; first += V::kWidth) {
    const AttentionRows part{rows.x + first * rows.stride, rows.stride,
                             angles_from<V>(rows.angles, first * pairs)};
    const std::int64_t some = count - first < V::kWidth ? count - first : V::kWidth;
    const RowScales<V> scales =
        quantize_rows16<V>(part, some, head_dim, steps, 1.0f, s.scores, s.keys + first * pairs);
    V::store(s.key_scale + first, scales.scale);
    poison = V::add(poison, scales.poison);
  }
  // A tile that is not full repeats the last key, which leaves the maximum as it is.
  for (std::int64_t key = count; key % V::kTileRows != 0; ++key) {
    float* const to = s.keys + key * pairs;
    __builtin_memcpy(to, to - pairs, static_cast<std::size_t>(pairs) * sizeof(float));
    s.key_scale[key] = s.key_scale[key - 1];
  }
  return V::sum(poison);
}

/// Scales of one vector of components of a block of values.
template <class V>
void scale_values16(const float* from, std::int64_t stride, std::int64_t count, std::int64_t left,
                    float* scale, float* steps) {
  using Reg = typename V::Reg;
  const Reg zero = V::broadcast(0.0f);
  const Reg most = V::broadcast(kValueSteps);
  Reg largest = zero;
  for (std::int64_t key = 0; key < count; ++key)
    largest = V::with_larger_bits(largest, V::abs(load_part<V>(from + key * stride, left)));
  const Reg finite = finite_or_zero<V>(largest);
  // Below the smallest the difference is negative: no steps, and a scale of 0.
  const Reg is_small = V::sub(finite, V::broadcast(kSmallestScaled));
  const Reg poison = V::sub(largest, largest);
  V::store(scale, V::add(V::where_negative(is_small, zero, V::div(finite, most)), poison));
  V::store(steps, V::where_negative(is_small, zero, V::div(most, finite)));
}

/// Quantizes a block of values, pairs of keys side by side, and zeros for a key that does not
/// exist.
template <class V>
void pack_values16(const float* from, std::int64_t stride, std::int64_t count,
                   std::int64_t head_dim, const Attention16Scratch<V>& s) {
  using Reg = typename V::Reg;
  constexpr int kRows = V::kTileRows;
  for (std::int64_t d = 0; d < head_dim; d += V::kWidth)
    scale_values16<V>(from + d, stride, count, head_dim - d, s.value_scale + d, s.value_steps + d);
  for (std::int64_t key = 0; key < count; key += 2) {
    const float* const row = from + key * stride;
    for (std::int64_t d = 0; d < head_dim; d += V::kWidth) {
      const Reg steps = V::load(s.value_steps + d);
      const Reg first = V::mul(load_part<V>(row + d, head_dim - d), steps);
      const Reg second = key + 1 < count
                             ? V::mul(load_part<V>(row + stride + d, head_dim - d), steps)
                             : V::broadcast(0.0f);
      float pairs[V::kWidth];
      V::store_int(pairs, V::pair(first, second));
      for (int part = 0; part < V::kWidth && d + part < head_dim; part += kRows) {
        __builtin_memcpy(
            s.values + (d + part) / kRows * Attention16Scratch<V>::kValuePanel + key / 2 * kRows,
            pairs + part, kRows * sizeof(float));
      }
    }
  }
}

/// kProbabilitySteps * 2^x for x <= 0; where x is NaN or -infinity, 0 or NaN, which V::pair takes
/// for 0. 2^f by the polynomial of degree 4 with least relative error, 3e-6, and value 1 at 0: a
/// step is 2.4e-4.
template <class V>
typename V::Reg probability16(typename V::Reg x) {
  constexpr float kSteps = kProbabilitySteps;
  const typename V::Reg n = V::round(x);
  const typename V::Reg f = V::sub(x, n);
  typename V::Reg p = V::broadcast(kSteps * 9.5828543e-3f);
  p = V::fma(p, f, V::broadcast(kSteps * 5.5906436e-2f));
  p = V::fma(p, f, V::broadcast(kSteps * 2.4024099e-1f));
  p = V::fma(p, f, V::broadcast(kSteps * 6.9312419e-1f));
  p = V::fma(p, f, V::broadcast(kSteps));
  return V::scale(p, n);
}

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
      const Int k = V::broadcast_pair(keys + r * pairs);
      for (int c = 0; c < kVectors; ++c) acc[r][c] = V::dot(acc[r][c], k, q[c]);
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

/// What a step of the streaming softmax multiplies by.
template <class V, int kVectors>
struct StepWeights {
  typename V::Reg before[kVectors];  ///< the sums so far
  typename V::Reg block[kVectors];   ///< those of this block
};

/// out[d][lane] = before * out[d][lane] + block * scale[d] * sum_key values[key][d] * p[key][lane]
/// for kTileRows components d. The first block of keys starts from zero.
template <class V, int kVectors>
[[gnu::noinline]] void value_tile16(const float* values, const float* scale, const float* p,
                                    std::int64_t pairs, bool first,
                                    const StepWeights<V, kVectors>& weights, float* out) {
  using Reg = typename V::Reg;
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
      const Int v = V::broadcast_pair(values + r);
      for (int c = 0; c < kVectors; ++c) acc[r][c] = V::dot(acc[r][c], v, weight[c]);
    }
    values += kRows;
    p += kVectors * V::kWidth;
  }
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r) {
    for (int c = 0; c < kVectors; ++c) {
      float* const to = out + (r * kVectors + c) * V::kWidth;
      const Reg so_far = first ? V::broadcast(0.0f) : V::mul(weights.before[c], V::load(to));
      const Reg factor = V::mul(V::broadcast(scale[r]), weights.block[c]);
      V::store(to, V::fma(factor, V::to_float(acc[r][c]), so_far));
    }
  }
}

/// One step of the streaming softmax: the strip whose first lane is `lane` of its task against one
/// block of keys. @param poison of the keys.
template <class V, int kVectors>
void strip_step16(const Attention16Scratch<V>& s, std::int64_t lane, const KeyBlock& block,
                  std::int64_t head_dim, float poison) {
  using Reg = typename V::Reg;
  using Int = typename V::Int;
  constexpr std::int64_t kLanes = kVectors * V::kWidth;
  const std::int64_t pairs = head_dim / 2;
  Reg max[kVectors];
  for (int c = 0; c < kVectors; ++c) max[c] = V::broadcast(-__builtin_inff());
  for (std::int64_t key = 0; key < block.count; key += V::kTileRows) {
    score_tile16<V, kVectors>(s.keys + key * pairs, s.key_scale + key, s.queries + lane * pairs,
                              pairs, s.scores + key * kLanes, max);
  }
  if (block.count % 2 != 0) {  // no key at all beside the last one
    for (int c = 0; c < kVectors; ++c)
      V::store(s.scores + block.count * kLanes + c * V::kWidth, V::broadcast(-__builtin_inff()));
  }

  Reg top[kVectors];  // its address is not known to what stores scores
  Reg scale[kVectors];
  Int sum[kVectors];
  for (int c = 0; c < kVectors; ++c) {
    top[c] = max[c];
    scale[c] = V::load(s.query_scale + lane + c * V::kWidth);
    sum[c] = V::zero();
  }
  const std::int64_t key_pairs = (block.count + 1) / 2;
  for (std::int64_t pair = 0; pair < key_pairs; ++pair) {
    for (int c = 0; c < kVectors; ++c) {
      const float* const score = s.scores + 2 * pair * kLanes + c * V::kWidth;
      const Reg first = V::mul(V::sub(V::load(score), top[c]), scale[c]);
      const Reg second = V::mul(V::sub(V::load(score + kLanes), top[c]), scale[c]);
      const Int p = V::pair(probability16<V>(first), probability16<V>(second));
      sum[c] = V::dot(sum[c], p, V::ones());
      V::store_int(s.scores + pair * kLanes + c * V::kWidth, p);
    }
  }

  StepWeights<V, kVectors> weights;
  for (int c = 0; c < kVectors; ++c) {
    float* const max_so_far = s.max + lane + c * V::kWidth;
    float* const sum_so_far = s.sum + lane + c * V::kWidth;
    const Reg old_max = V::load(max_so_far);
    const Reg block_max = V::mul(top[c], scale[c]);
    const Reg new_max = V::max(old_max, block_max);
    weights.before[c] = exp2<V>(V::sub(old_max, new_max));
    weights.block[c] = exp2<V>(V::sub(block_max, new_max));
    const Reg before = V::fma(weights.before[c], V::load(sum_so_far), V::broadcast(poison));
    V::store(max_so_far, new_max);
    V::store(sum_so_far, V::fma(weights.block[c], V::to_float(sum[c]), before));
  }
  for (std::int64_t d = 0; d < head_dim; d += V::kTileRows) {
    value_tile16<V, kVectors>(s.values + d / V::kTileRows * Attention16Scratch<V>::kValuePanel,
                              s.value_scale + d, s.scores, key_pairs, block.first == 0, weights,
                              s.out + lane * head_dim + d * kLanes);
  }
}

template <class V>
void strip_step16(const Attention16Scratch<V>& s, std::int64_t lane, std::int64_t lanes,
                  const KeyBlock& block, std::int64_t head_dim, float poison) {
  static_assert(V::kTileVectors == 3);
  switch (lanes / V::kWidth) {
    case 3: return strip_step16<V, 3>(s, lane, block, head_dim, poison);
    case 2: return strip_step16<V, 2>(s, lane, block, head_dim, poison);
    default: return strip_step16<V, 1>(s, lane, block, head_dim, poison);
  }
}

/// The largest integer R with head_dim * R^2 < 2^31, for head_dim >= 8.
template <class V>
float score_steps(std::int64_t head_dim) {
  return static_cast<float>(
      static_cast<std::int32_t>(__builtin_sqrt(2147483647.0 / static_cast<double>(head_dim))));
}

template <class V>
void attention16_task(const AttentionTask& task) {
  const std::int64_t head_dim = task.head_dim;
  const std::int64_t stride = task.stride;
  const float steps = score_steps<V>(head_dim);
  const std::int64_t vectors = (task.num_queries + V::kWidth - 1) / V::kWidth;
  const Attention16Scratch<V> s(task.scratch, head_dim, vectors * V::kWidth);

  const std::int64_t first_keys = task.num_keys < kKeyBlock ? task.num_keys : kKeyBlock;
  prefetch_rows<V>(task.k, stride, first_keys, head_dim);
  prefetch_rows<V>(task.v, stride, first_keys, head_dim);
  for_strips<V>(task.num_queries, [&](std::int64_t lane, std::int64_t lanes) {
    const std::int64_t later = task.num_queries - lane - lanes;
    prefetch_rows<V>(task.q + (lane + lanes) * task.q_stride, task.q_stride,
                     later < lanes ? later : lanes, head_dim);
    for (std::int64_t q = lane; q < lane + lanes; q += V::kWidth)
      pack_queries16<V>(task, s, q, steps, s.queries + lane * (head_dim / 2) + (q - lane), lanes);
  });
  for (std::int64_t key = 0; key < task.num_keys; key += kKeyBlock) {
    const std::int64_t left = task.num_keys - key;
    const std::int64_t num_keys = left < kKeyBlock ? left : kKeyBlock;
    const float* const k = task.k + key * stride;
    const float* const v = task.v + key * stride;
    const AttentionAngles angles = angles_from<V>(task.k_angles, key * (head_dim / 2));
    const float poison = pack_keys16<V>({k, stride, angles}, num_keys, head_dim, steps, s);
    pack_values16<V>(v, stride, num_keys, head_dim, s);
    const std::int64_t next = left - num_keys < kKeyBlock ? left - num_keys : kKeyBlock;
    for_strips<V>(task.num_queries, [&](std::int64_t lane, std::int64_t lanes) {
      const std::int64_t begin = next * lane / task.num_queries;
      const std::int64_t end = next * (lane + lanes) / task.num_queries;
      prefetch_rows<V>(k + (kKeyBlock + begin) * stride, stride, end - begin, head_dim);
      prefetch_rows<V>(v + (kKeyBlock + begin) * stride, stride, end - begin, head_dim);
      strip_step16<V>(s, lane, lanes, {key, num_keys}, head_dim, poison);
    });
  }
  for_strips<V>(task.num_queries, [&](std::int64_t lane, std::int64_t lanes) {
    write_strip<V>(s.out + lane * head_dim, s.sum + lane, lanes, task.num_queries - lane, head_dim,
                   task.out + lane * task.out_stride, task.out_stride);
  });
}

}  // namespace fovea::cpu
