#pragma once

// Attention of one task in bf16, in the tiles of AMX. Include only from the unit of an instruction
// set, which defines a vector type V in an anonymous namespace.
//
// Strips, blocks of keys and the streaming softmax are those of ops/cpu/attention/body.h: lanes are
// queries, scores are S^T = K Q^T in units of log2, outputs O^T = V^T P^T. Queries times the scale,
// keys, weights and values are rounded to bf16; sums, maxima and outputs are f32. What outputs are
// divided by is the sum of the weights before they are rounded.
//
// Sums have the order of TDPBF16PS: of every step, those over even and over odd numbers are two
// chains of fused multiply-adds from zero; the two are added, then their sum to that of the steps
// before. The components of a score lie in equal steps of at most 32, the keys of an output in
// steps of 32. So a query's bits depend on nothing but its sequence.
//
// Besides the members of the vector types of ops/cpu/simd, V has
//   pair_bf16(first, second)   both rounded to nearest even: the lower and the upper half of a lane
// Instructions are those of ops/cpu/gemm/amx_tiles.h.

#include <utility>

#include "ops/cpu/attention/body.h"
#include "ops/cpu/simd/amx.h"

namespace fovea::cpu {

/// Pairs of numbers in a row of a tile.
inline constexpr std::int64_t kTilePairs = kAmxBytes / 4;
/// Steps of a block of keys.
inline constexpr std::int64_t kKeySteps = kKeyBlock / (2 * kTilePairs);
/// Memory of a tile, in floats.
inline constexpr std::int64_t kTileFloats = kAmxRows * kTilePairs;

/// The components of a head in the steps of its scores, and in the tiles of its outputs.
struct HeadTiles {
  std::int64_t steps;
  std::int64_t step_pairs;  ///< of components in each; behind the last one are zeros
  std::int64_t components;  ///< of outputs, in whole tiles

  explicit HeadTiles(std::int64_t head_dim)
      : steps((head_dim + 2 * kTilePairs - 1) / (2 * kTilePairs)),
        step_pairs((head_dim + 2 * steps - 1) / (2 * steps)),
        components((head_dim + kAmxRows - 1) / kAmxRows * kAmxRows) {}

  [[nodiscard]] std::int64_t pairs() const { return steps * step_pairs; }
};

/// Scratch of one task. A pair of bf16 numbers takes the place of a float.
template <class V>
struct Bf16Scratch {
  static constexpr std::int64_t kSlack = 16;  // stores of whole vectors go beyond the last number

  /// @param lanes of the task: its queries in whole vectors.
  Bf16Scratch(ScratchParts<V>& parts, const HeadTiles& head, std::int64_t lanes)
      : queries(parts.take(lanes * head.pairs())),
        out(parts.take(lanes * head.components)),
        keys(parts.take(kKeyBlock * head.pairs() + kSlack)),
        values(parts.take(kKeySteps * head.components * kTilePairs)),
        scores(parts.take(score_floats<V>(head.components))),
        max(parts.take(lanes)),
        sum(parts.take(lanes)) {}

  float* queries;  // [strip][pairs of components][lanes of the strip]
  float* out;      // [strip][components][lanes of the strip]
  float* keys;     // [kKeyBlock][pairs of components]
  float* values;   // [components / kAmxRows][kKeySteps][kAmxRows][kTilePairs of keys]
  float* scores;   // [kKeyBlock][lanes of the strip], then weights, [pairs of keys][lanes]
  float* max;      // [lanes of the task]
  float* sum;      // [lanes of the task]
};

/// 2^x for x <= 0, 0 and NaN as exp2 has them. 2^f by the polynomial of degree 3 with least
/// relative error, 1.01e-4, and value 1 at 0: rounding to bf16 is off by up to 2e-3.
template <class V>
typename V::Reg weight_bf16(typename V::Reg x) {
  const typename V::Reg n = V::round(x);
  const typename V::Reg f = V::sub(x, n);
  typename V::Reg p = V::broadcast(5.50090578e-2f);
  p = V::fma(p, f, V::broadcast(2.42210975e-1f));
  p = V::fma(p, f, V::broadcast(6.93282898e-1f));
  p = V::fma(p, f, V::broadcast(1.0f));
  return V::scale(p, n);
}

/// The factors of a product of tiles: a tile of the left one for every kAmxRows rows of sums, one
/// of the right one for every vector of lanes. In floats.
struct TileFactors {
  const float* left;
  std::int64_t left_tile;    ///< from a tile to the one below
  std::int64_t left_step;    ///< to that of the next step
  std::int64_t left_stride;  ///< from a row of a tile to the next
  const float* right;
  std::int64_t right_step;
  std::int64_t lanes;  ///< of the strip: from a row to the next
};

/// Attention in bf16, a Method of attend(), for tasks without a bias.
template <class Vector, class Instructions>
struct TileAttention {
  using V = Vector;
  using Reg = typename V::Reg;
  static constexpr std::int64_t kPrefetches = kKeyBlock / 2;

  explicit TileAttention(const AttentionTask& of)
      : task(of),
        head(of.head_dim),
        parts(of.scratch),
        s(parts, head, whole_vectors<V>(of.num_queries)) {
    const std::int64_t first_keys = task.num_keys < kKeyBlock ? task.num_keys : kKeyBlock;
    prefetch_rows<V>(task.k, task.stride, first_keys, task.head_dim);
    prefetch_rows<V>(task.v, task.stride, first_keys, task.head_dim);
  }
  TileAttention(const TileAttention&) = delete;
  TileAttention& operator=(const TileAttention&) = delete;
  ~TileAttention() { Instructions::release(); }

  void pack_queries(std::int64_t lane, std::int64_t lanes) {
    constexpr float kLog2E = 1.44269504f;
    const std::int64_t later = task.num_queries - lane - lanes;
    prefetch_rows<V>(task.q + (lane + lanes) * task.q_stride, task.q_stride,
                     later < lanes ? later : lanes, task.head_dim);
    for (std::int64_t q = lane; q < lane + lanes; q += V::kWidth) {
      float* const rows = s.keys;  // not in use yet
      round_rows({task.q + q * task.q_stride, task.q_stride,
                  angles_from<V>(task.q_angles, q * (task.head_dim / 2))},
                 task.num_queries - q, task.scale * kLog2E, rows);
      float* const to = s.queries + lane * head.pairs() + (q - lane);
      for (std::int64_t pair = 0; pair < head.pairs(); pair += V::kWidth) {
        Reg block[V::kWidth];
        load_block<V>(rows + pair, head.pairs(), task.num_queries - q, head.pairs() - pair, block);
        V::transpose(block);
        for (int i = 0; i < V::kWidth && pair + i < head.pairs(); ++i)
          V::store(to + (pair + i) * lanes, block[i]);
      }
      V::store(s.max + q, V::broadcast(-__builtin_inff()));
      V::store(s.sum + q, V::broadcast(0.0f));
    }
  }

  void pack_keys(const float* k, const float* v, const KeyBlock& block) {
    for (std::int64_t key = 0; key < block.count; key += V::kWidth) {
      round_rows({k + key * task.stride, task.stride,
                  angles_from<V>(task.k_angles, (block.first + key) * (task.head_dim / 2))},
                 block.count - key, 1.0f, s.keys + key * head.pairs());
    }
    pack_values(v, block.count);
  }

  void step(std::int64_t lane, std::int64_t lanes, const KeyBlock& block,
            const RowsAhead<V>& ahead) {
    const SeenKeys seen = seen_keys<V>(task, lane, lanes, block);
    with_vectors<V>(lanes, [&]<int kVectors>() { strip_step<kVectors>(lane, block, seen, ahead); });
  }

  [[nodiscard]] const float* strip_out(std::int64_t lane) const {
    return s.out + lane * head.components;
  }

  /// Rounds up to kWidth rows, of which `left` exist, times a factor.
  /// @param to [rows][pairs of components], and kSlack behind them.
  void round_rows(const AttentionRows& rows, std::int64_t left, float factor, float* to) {
    const std::int64_t count = left < V::kWidth ? left : V::kWidth;
    const AttentionRows from = rotated<V>(rows, count, task.head_dim, s.scores);
    const Reg scale = V::broadcast(factor);
    for (std::int64_t r = 0; r < count; ++r) {
      const float* const x = from.x + r * from.stride;
      auto* const row = reinterpret_cast<std::byte*>(to + r * head.pairs());
      for (std::int64_t d = 0; d < 2 * head.pairs(); d += V::kWidth) {
        const std::int64_t some = task.head_dim - d;
        V::store_bf16(row + 2 * d, V::mul(scale, load_part<V>(x + d, some < 0 ? 0 : some)));
      }
    }
  }

  /// Components become rows, pairs of keys their columns; zeros for what does not exist.
  void pack_values(const float* from, std::int64_t count) {
    for (std::int64_t d = 0; d < head.components; d += V::kWidth) {
      const std::int64_t some = task.head_dim - d;
      const auto load_key = [&](std::int64_t key) {
        return key < count && some > 0 ? load_part<V>(from + key * task.stride + d, some)
                                       : V::broadcast(0.0f);
      };
      float* const tiles = s.values + d / kAmxRows * kKeySteps * kTileFloats;
      for (std::int64_t pair = 0; 2 * pair < whole_steps(count); pair += V::kWidth) {
        Reg block[V::kWidth];
        for (std::int64_t i = 0; i < V::kWidth; ++i) {
          const std::int64_t key = 2 * (pair + i);
          block[i] = __builtin_bit_cast(Reg, V::pair_bf16(load_key(key), load_key(key + 1)));
        }
        V::transpose(block);
        float* const to =
            tiles + pair / kTilePairs * kTileFloats + d % kAmxRows * kTilePairs + pair % kTilePairs;
        for (std::int64_t i = 0; i < V::kWidth; ++i) V::store(to + i * kTilePairs, block[i]);
      }
    }
  }

  [[nodiscard]] static std::int64_t whole_steps(std::int64_t keys) {
    return (keys + 2 * kTilePairs - 1) / (2 * kTilePairs) * (2 * kTilePairs);
  }

  template <int kVectors>
  void strip_step(std::int64_t lane, const KeyBlock& block, const SeenKeys& seen,
                  RowsAhead<V> ahead) {
    constexpr std::int64_t kLanes = kVectors * V::kWidth;
    multiply_keys<kVectors>(s.queries + lane * head.pairs(), block.count);
    Reg max[kVectors];
    Reg rescale[kVectors];
    for (int c = 0; c < kVectors; ++c) max[c] = V::load(s.max + lane + c * V::kWidth);
    raise<kVectors>(seen, block.count, max);
    bool is_raised = false;
    for (int c = 0; c < kVectors; ++c) {
      float* const before = s.max + lane + c * V::kWidth;
      rescale[c] = exp2<V>(V::sub(V::load(before), max[c]));
      is_raised =
          is_raised || V::count_outside(rescale[c], V::broadcast(1.0f), V::broadcast(1.0f)) > 0;
      V::store(before, max[c]);
    }
    float* const out = s.out + lane * head.components;
    if (block.first > 0 && is_raised) {
      for (std::int64_t d = 0; d < head.components; ++d) {
        for (int c = 0; c < kVectors; ++c) {
          float* const at = out + d * kLanes + c * V::kWidth;
          V::store(at, V::mul(rescale[c], V::load(at)));
        }
      }
    }
    weigh<kVectors>(lane, block.count, max, rescale, ahead);
    multiply_values<kVectors>(whole_steps(block.count) / (2 * kTilePairs), block.first == 0, out);
  }

  /// Raises maxima by the scores that are seen; others become -infinity.
  template <int kVectors>
  void raise(const SeenKeys& seen, std::int64_t count, Reg (&max)[kVectors]) const {
    if (seen.all_lanes < count) return hide_keys<V, kVectors>(seen, count, s.scores, max);
    Reg top[kVectors];  // its address is not known to the caller
    for (int c = 0; c < kVectors; ++c) top[c] = max[c];
    for (std::int64_t i = 0; i < count * kVectors; i += kVectors) {
      for (int c = 0; c < kVectors; ++c)
        top[c] = V::max(top[c], V::load(s.scores + (i + c) * V::kWidth));
    }
    for (int c = 0; c < kVectors; ++c) max[c] = top[c];
  }

  /// From scores to weights, in their place, with zeros up to the end of a step; adds up their sum.
  template <int kVectors>
  void weigh(std::int64_t lane, std::int64_t count, const Reg (&max)[kVectors],
             const Reg (&rescale)[kVectors], RowsAhead<V>& ahead) const {
    constexpr std::int64_t kLanes = kVectors * V::kWidth;
    Reg sum[kVectors];
    for (int c = 0; c < kVectors; ++c) {
      sum[c] = V::mul(rescale[c], V::load(s.sum + lane + c * V::kWidth));
      if (count % 2 != 0)  // a pair has a second key, of weight 0
        V::store(s.scores + count * kLanes + c * V::kWidth, V::broadcast(-__builtin_inff()));
    }
    const std::int64_t pairs = (count + 1) / 2;
    for (std::int64_t pair = 0; pair < pairs; ++pair) {
      ahead.prefetch(task.head_dim);
      for (int c = 0; c < kVectors; ++c) {
        const float* const score = s.scores + 2 * pair * kLanes + c * V::kWidth;
        const Reg first = weight_bf16<V>(V::sub(V::load(score), max[c]));
        const Reg second = weight_bf16<V>(V::sub(V::load(score + kLanes), max[c]));
        sum[c] = V::add(sum[c], V::add(first, second));
        V::store_int(s.scores + pair * kLanes + c * V::kWidth, V::pair_bf16(first, second));
      }
    }
    for (int c = 0; c < kVectors; ++c) V::store(s.sum + lane + c * V::kWidth, sum[c]);
    for (std::int64_t i = pairs * kVectors; i < whole_steps(count) / 2 * kVectors; ++i)
      V::store(s.scores + i * V::kWidth, V::broadcast(0.0f));
  }

  // Products. Tiles: up to two times three of sums, one of each factor.

  enum Tile : int { kLeft = 6, kRight = 7, kNumTiles = 8 };

  template <int kVectors>
  void multiply_keys(const float* queries, std::int64_t count) {
    constexpr std::int64_t kLanes = kVectors * V::kWidth;
    shape(head.step_pairs);
    TileFactors factors{.left = s.keys,
                        .left_tile = kAmxRows * head.pairs(),
                        .left_step = head.step_pairs,
                        .left_stride = head.pairs(),
                        .right = queries,
                        .right_step = head.step_pairs * kLanes,
                        .lanes = kLanes};
    for (std::int64_t key = 0; key < count; key += 2 * kAmxRows) {
      float* const to = s.scores + key * kLanes;
      if (count - key > kAmxRows) {
        multiply<2, kVectors>(factors, head.steps, true, to);
      } else {
        multiply<1, kVectors>(factors, head.steps, true, to);
      }
      factors.left += 2 * factors.left_tile;
    }
  }

  template <int kVectors>
  void multiply_values(std::int64_t steps, bool first, float* out) {
    constexpr std::int64_t kLanes = kVectors * V::kWidth;
    shape(kTilePairs);
    TileFactors factors{.left = s.values,
                        .left_tile = kKeySteps * kTileFloats,
                        .left_step = kTileFloats,
                        .left_stride = kTilePairs,
                        .right = s.scores,
                        .right_step = kTilePairs * kLanes,
                        .lanes = kLanes};
    for (std::int64_t d = 0; d < head.components; d += 2 * kAmxRows) {
      float* const to = out + d * kLanes;
      if (head.components - d > kAmxRows) {
        multiply<2, kVectors>(factors, steps, first, to);
      } else {
        multiply<1, kVectors>(factors, steps, first, to);
      }
      factors.left += 2 * factors.left_tile;
    }
  }

  /// Shapes of tiles stay from call to call: setting them takes as long as eight products.
  /// @param pairs of a step.
  void shape(std::int64_t pairs) {
    if (pairs == shaped_for) return;
    shaped_for = pairs;
    TileShapes shapes;
    for (int tile = 0; tile < kNumTiles; ++tile) {
      shapes.rows[tile] = static_cast<std::uint8_t>(tile == kRight ? pairs : kAmxRows);
      shapes.bytes[tile] = static_cast<std::uint16_t>(4 * (tile == kLeft ? pairs : V::kWidth));
    }
    Instructions::configure(shapes);
  }

  /// sums[row][lane] (+)= left . right for kTiles tiles of rows and kVectors vectors of lanes.
  /// @param sums rows `lanes` floats apart. @param fresh whether they begin with zero.
  template <int kTiles, int kVectors>
  static void multiply(const TileFactors& in, std::int64_t steps, bool fresh, float* sums) {
    using I = Instructions;
    constexpr std::make_integer_sequence<int, kTiles * kVectors> kSums{};
    const std::int64_t stride = in.lanes * std::int64_t{sizeof(float)};
    const auto of_sum = [&](int tile) {
      return sums + tile / kVectors * kAmxRows * in.lanes + tile % kVectors * V::kWidth;
    };
    for_each(kSums, [&]<int kTile>() {
      if (fresh) {
        I::template clear<kTile>();
      } else {
        I::template load<kTile>(of_sum(kTile), stride);
      }
    });
    const float* left = in.left;
    const float* right = in.right;
    for (std::int64_t step = 0; step < steps; ++step) {
      for_each(kSums, [&]<int kTile>() {
        // Rows of tiles run to and fro, so that the last factor of one is the first of the next.
        constexpr int kRow = kTile / kVectors;
        constexpr int kPlace = kTile % kVectors;
        constexpr int kColumn = kRow == 0 ? kPlace : kVectors - 1 - kPlace;
        if constexpr (kPlace == 0)
          I::template load<kLeft>(left + kRow * in.left_tile, in.left_stride * 4);
        if constexpr (kRow == 0 || kPlace > 0)
          I::template load<kRight>(right + kColumn * V::kWidth, stride);
        I::template multiply<kRow * kVectors + kColumn, kLeft, kRight>();
      });
      left += in.left_step;
      right += in.right_step;
    }
    for_each(kSums, [&]<int kTile>() { I::template store<kTile>(of_sum(kTile), stride); });
  }

  template <int... kNumbers, class Body>
  static void for_each(std::integer_sequence<int, kNumbers...>, const Body& body) {
    (body.template operator()<kNumbers>(), ...);
  }

  const AttentionTask& task;
  HeadTiles head;
  ScratchParts<V> parts;
  Bf16Scratch<V> s;
  std::int64_t shaped_for = 0;  // pairs of a step
};

template <class V>
std::int64_t bf16_scratch_floats(std::int64_t head_dim, std::int64_t queries, std::int64_t) {
  ScratchParts<V> parts(nullptr);
  const Bf16Scratch<V> s(parts, HeadTiles(head_dim), whole_vectors<V>(queries));
  static_cast<void>(s);
  return parts.floats();
}

template <class V, class Instructions>
constexpr AttentionKernel bf16_attention_kernel(const char* name) {
  return {.name = name,
          .run = &attend<TileAttention<V, Instructions>>,
          .scratch_floats = &bf16_scratch_floats<V>,
          .task_components = 76032};  // 6 bytes each: half of a query, and its output
}

}  // namespace fovea::cpu
