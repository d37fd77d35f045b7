#pragma once

// Attention of one task in integers of 16 bits, written once for all instruction sets. Include only
// from the unit of an instruction set, which defines a vector type V in an anonymous namespace.
//
// Strips, blocks of keys and the streaming softmax are those of ops/cpu/attention/body.h: lanes are
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
// Besides the members of the vector types of ops/cpu/simd, V has integers of 32 bits:
//   Int, zero, load_int, store_int, to_float
//   ones()                every half 1
//   dot(sum, a, b)        sum + a . b over the two halves of every lane
//   pair(first, second)   both rounded to nearest even, NaN to 0: the lower and the upper half
//   with_larger_bits(a, b) of every lane, bits compared as an integer
// What multiplies is Products, PairProducts<V> or TileProducts<V, Instructions>, one for each task:
//   kKeyRows              keys whose scores are computed at once: that of the last one is repeated
//   kGroupKeys            keys whose weights are stored together
//   row_floats()          memory of a row of integers, in floats as all that follows
//   query_floats()        of a packed query
//   value_floats()        of the packed values of a block
//   store_part(row, d, y) kWidth numbers of a row from d on, rounded to nearest even
//   pack_queries, pack_values   into the order in which they are multiplied
//   scores, values        the two products of a strip and a block of keys
//   store_weights, complete_weights   a group of weights over the scores, and zeros behind the last
// All units give the same bits: every operation on floats is the same one, with fma rounded once.
// A compiler must not contract operations of its own accord.

#include "ops/cpu/attention/body.h"
#include "ops/cpu/attention/int16/quantize.h"

namespace fovea::cpu {

/// Scratch of one task.
template <class V>
struct Attention16Scratch {
  static constexpr std::int64_t kSlack = 16;  // stores of whole vectors go beyond the last number

  /// @param lanes of the task: its queries in whole vectors.
  template <class Products>
  Attention16Scratch(const Products& products, ScratchParts<V>& parts, std::int64_t head_dim,
                     std::int64_t lanes)
      : queries(parts.take(lanes * products.query_floats())),
        out(parts.take(lanes * head_dim)),
        keys(parts.take(kKeyBlock * products.row_floats() + kSlack)),
        values(parts.take(products.value_floats())),
        scores(parts.take(score_floats<V>(head_dim))),
        max(parts.take(lanes)),
        sum(parts.take(lanes)),
        query_scale(parts.take(lanes)),
        key_scale(parts.take(kKeyBlock)),
        value_scale(parts.take(head_dim + kSlack)),
        value_steps(parts.take(head_dim + kSlack)) {}

  float* queries;      // packed, [strip][query_floats][lanes of the strip]
  float* out;          // [strip][head_dim][lanes of the strip]
  float* keys;         // [kKeyBlock][row_floats]
  float* values;       // packed
  float* scores;       // [kKeyBlock][lanes of the strip], then weights
  float* max;          // [lanes of the task]
  float* sum;          // [lanes of the task], in units of 1 / kProbabilitySteps
  float* query_scale;  // [lanes of the task]
  float* key_scale;    // [kKeyBlock]
  float* value_scale;  // [head_dim]
  float* value_steps;  // [head_dim]
};

/// Quantizes kWidth queries, of which the first `count` exist, into lanes.
template <class V, class Products>
void pack_queries16(const Products& products, const AttentionTask& task,
                    const Attention16Scratch<V>& s, std::int64_t query, float steps, float* to,
                    std::int64_t lanes) {
  constexpr float kLog2E = 1.44269504f;
  const float sign = task.scale < 0.0f ? -1.0f : 1.0f;
  const std::int64_t left = task.num_queries - query;
  const std::int64_t count = left < V::kWidth ? left : V::kWidth;
  float* const rows = s.keys;  // not in use yet, nor are scores
  const AttentionRows queries{task.q + query * task.q_stride, task.q_stride,
                              angles_from<V>(task.q_angles, query * (task.head_dim / 2))};
  const RowScales<V> scales =
      quantize_rows16<V>(products, queries, count, task.head_dim, steps, sign, s.scores, rows);
  V::store(s.query_scale + query, V::mul(scales.scale, V::broadcast(sign * task.scale * kLog2E)));
  V::store(s.sum + query, scales.poison);
  V::store(s.max + query, V::broadcast(-__builtin_inff()));
  products.pack_queries(rows, count, to, lanes);
}

/// Quantizes a block of keys. @return NaN if one of them has a NaN or infinity, or 0.
template <class V, class Products>
float pack_keys16(const Products& products, const AttentionRows& rows, std::int64_t count,
                  std::int64_t head_dim, float steps, const Attention16Scratch<V>& s) {
  const std::int64_t row_floats = products.row_floats();
  typename V::Reg poison = V::broadcast(0.0f);
  for (std::int64_t first = 0; first < count; first += V::kWidth) {
    const AttentionRows part{rows.x + first * rows.stride, rows.stride,
                             angles_from<V>(rows.angles, first * (head_dim / 2))};
    const std::int64_t some = count - first < V::kWidth ? count - first : V::kWidth;
    const RowScales<V> scales = quantize_rows16<V>(products, part, some, head_dim, steps, 1.0f,
                                                   s.scores, s.keys + first * row_floats);
    V::store(s.key_scale + first, scales.scale);
    poison = V::add(poison, scales.poison);
  }
  // Scores that are computed with others repeat the last key, which leaves the maximum as it is.
  for (std::int64_t key = count; key % Products::kKeyRows != 0; ++key) {
    float* const to = s.keys + key * row_floats;
    __builtin_memcpy(to, to - row_floats, static_cast<std::size_t>(row_floats) * sizeof(float));
    s.key_scale[key] = s.key_scale[key - 1];
  }
  return V::sum(poison);
}

/// Quantizes a block of values.
template <class V, class Products>
void pack_values16(const Products& products, const float* from, std::int64_t stride,
                   std::int64_t count, std::int64_t head_dim, const Attention16Scratch<V>& s) {
  for (std::int64_t d = 0; d < head_dim; d += V::kWidth)
    scale_values16<V>(from + d, stride, count, head_dim - d, s.value_scale + d, s.value_steps + d);
  products.pack_values(from, stride, count, s.value_steps, s.values);
}

/// One step of the streaming softmax: the strip whose first lane is `lane` of its task against one
/// block of keys. @param poison of the keys. @param seen by the strip. @param ahead this strip's
/// part of the next block, fetched between groups of weights.
template <class V, int kVectors, class Products>
void strip_step16(Products& products, const Attention16Scratch<V>& s, std::int64_t lane,
                  const KeyBlock& block, std::int64_t head_dim, float poison, const SeenKeys& seen,
                  RowsAhead<V> ahead) {
  using Reg = typename V::Reg;
  using Int = typename V::Int;
  constexpr std::int64_t kLanes = kVectors * V::kWidth;
  constexpr std::int64_t kGroupKeys = Products::kGroupKeys;
  Reg max[kVectors];
  for (int c = 0; c < kVectors; ++c) max[c] = V::broadcast(-__builtin_inff());
  products.template scores<kVectors>(
      s.keys, s.key_scale, s.queries + lane * products.query_floats(), block.count, s.scores, max);
  if (seen.all_lanes < block.count) {
    // A lane that sees no key of the block has weights of 0 in it, relative to a number that is no
    // larger than what the lane has seen before.
    constexpr float kLeast = -3.40282347e38f;
    for (int c = 0; c < kVectors; ++c) max[c] = V::broadcast(kLeast);
    hide_keys<V, kVectors>(seen, block.count, s.scores, max);
  }
  for (std::int64_t key = block.count; key % kGroupKeys != 0; ++key) {  // no key at all
    for (int c = 0; c < kVectors; ++c)
      V::store(s.scores + key * kLanes + c * V::kWidth, V::broadcast(-__builtin_inff()));
  }

  Reg top[kVectors];  // its address is not known to what stores weights
  Reg scale[kVectors];
  Int sum[kVectors];
  for (int c = 0; c < kVectors; ++c) {
    top[c] = max[c];
    scale[c] = V::load(s.query_scale + lane + c * V::kWidth);
    sum[c] = V::zero();
  }
  const std::int64_t groups = (block.count + kGroupKeys - 1) / kGroupKeys;
  for (std::int64_t group = 0; group < groups; ++group) {
    ahead.prefetch(head_dim);
    for (int c = 0; c < kVectors; ++c) {
      const float* const score = s.scores + kGroupKeys * group * kLanes + c * V::kWidth;
      Int pairs[kGroupKeys / 2];
      for (int i = 0; i < kGroupKeys / 2; ++i) {
        const Reg first = V::load(score + 2 * i * kLanes);
        const Reg second = V::load(score + (2 * i + 1) * kLanes);
        pairs[i] = V::pair(probability16<V>(V::mul(V::sub(first, top[c]), scale[c])),
                           probability16<V>(V::mul(V::sub(second, top[c]), scale[c])));
        sum[c] = V::dot_int16(sum[c], pairs[i], V::ones());
      }
      Products::template store_weights<kVectors>(s.scores, group, c, pairs);
    }
  }
  Products::template complete_weights<kVectors>(s.scores, groups);

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
  products.template values<kVectors>(s.values, s.value_scale, s.scores, groups, block.first == 0,
                                     weights, s.out + lane * head_dim);
}

/// Attention in integers of 16 bits, a Method of attend(), for tasks without a bias.
template <class Vector, class Products>
struct IntegerAttention {
  using V = Vector;
  static constexpr std::int64_t kPrefetches = kKeyBlock / Products::kGroupKeys;

  explicit IntegerAttention(const AttentionTask& of)
      : task(of),
        products(of.head_dim),
        parts(of.scratch),
        s(products, parts, of.head_dim, whole_vectors<V>(of.num_queries)),
        steps(score_steps<V>(of.head_dim)) {
    const std::int64_t first_keys = task.num_keys < kKeyBlock ? task.num_keys : kKeyBlock;
    prefetch_rows<V>(task.k, task.stride, first_keys, task.head_dim);
    prefetch_rows<V>(task.v, task.stride, first_keys, task.head_dim);
  }

  void pack_queries(std::int64_t lane, std::int64_t lanes) {
    const std::int64_t later = task.num_queries - lane - lanes;
    prefetch_rows<V>(task.q + (lane + lanes) * task.q_stride, task.q_stride,
                     later < lanes ? later : lanes, task.head_dim);
    for (std::int64_t q = lane; q < lane + lanes; q += V::kWidth) {
      pack_queries16<V>(products, task, s, q, steps,
                        s.queries + lane * products.query_floats() + (q - lane), lanes);
    }
  }
  void pack_keys(const float* k, const float* v, const KeyBlock& block) {
    const AttentionAngles angles = angles_from<V>(task.k_angles, block.first * (task.head_dim / 2));
    poison =
        pack_keys16<V>(products, {k, task.stride, angles}, block.count, task.head_dim, steps, s);
    pack_values16<V>(products, v, task.stride, block.count, task.head_dim, s);
  }
  void step(std::int64_t lane, std::int64_t lanes, const KeyBlock& block,
            const RowsAhead<V>& ahead) {
    const SeenKeys seen = seen_keys<V>(task, lane, lanes, block);
    with_vectors<V>(lanes, [&]<int kVectors>() {
      strip_step16<V, kVectors>(products, s, lane, block, task.head_dim, poison, seen, ahead);
    });
  }
  [[nodiscard]] const float* strip_out(std::int64_t lane) const {
    return s.out + lane * task.head_dim;
  }

  const AttentionTask& task;
  Products products;
  ScratchParts<V> parts;
  Attention16Scratch<V> s;
  float steps;
  float poison = 0.0f;  // of the block of keys
};

template <class V, class Products>
std::int64_t attention16_scratch_floats(std::int64_t head_dim, std::int64_t queries, std::int64_t) {
  const Products products(head_dim);
  ScratchParts<V> parts(nullptr);
  const Attention16Scratch<V> s(products, parts, head_dim, whole_vectors<V>(queries));
  static_cast<void>(s);
  return parts.floats();
}

template <class V, class Products>
constexpr AttentionKernel attention16_kernel(const char* name) {
  return {.name = name,
          .run = &attend<IntegerAttention<V, Products>>,
          .scratch_floats = &attention16_scratch_floats<V, Products>,
          .task_components = 76032};  // 6 bytes each: half of a query, and its output
}

}  // namespace fovea::cpu
