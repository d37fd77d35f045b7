#pragma once

// Products of attention in the tiles of AMX, with the sums of pair_products.h. AMX multiplies
// integers of 8 bits, so each one of 16 bits is two: x = 256 high + low, high signed, low unsigned.
// Then x . y = 65536 high . high + 256 (high . low + low . high) + low . low, four products into
// three tiles of sums. All of it is modulo 2^32, and the result fits 32 bits, so it is exact.
//
// Include only from the unit of an instruction set; body.h says what V and the members mean.
// Besides what it lists there, V has
//   store_planes(high, low, y)  kWidth numbers, rounded to nearest even, as bytes in two places
//   high_bytes(a, b)            of two pairs, for every lane: numbers 0, 2, 1 and 3
//   low_bytes(a, b)             likewise
//   join(high, middle, low)     65536 high + 256 middle + low
// Instructions are those of ops/cpu/gemm/amx_tiles.h, with products of all signs:
//   multiply_ss<sum, x, y>, multiply_su, multiply_us, multiply_uu   signs of x and y

#include "ops/cpu/attention/int16/quantize.h"
#include "ops/cpu/simd/amx.h"

namespace fovea::cpu {

template <class V, class Instructions>
class TileProducts {
 public:
  using Reg = typename V::Reg;
  using Int = typename V::Int;
  static constexpr std::int64_t kKeyRows = kAmxRows;
  static constexpr std::int64_t kGroupKeys = 4;

  explicit TileProducts(std::int64_t head_dim)
      : head_dim_(head_dim),
        steps_((head_dim + kAmxBytes - 1) / kAmxBytes),
        step_groups_((head_dim + 4 * steps_ - 1) / (4 * steps_)) {}
  TileProducts(const TileProducts&) = delete;
  TileProducts& operator=(const TileProducts&) = delete;
  ~TileProducts() { Instructions::release(); }

  // Rows are [plane][kAmxBytes steps] bytes, packed queries [plane][groups of 4][lanes][4], values
  // [component / kWidth][step of 64 keys][plane][kWidth][64], weights [group][plane][lanes][4].
  [[nodiscard]] std::int64_t row_floats() const { return 2 * plane_floats(); }
  [[nodiscard]] std::int64_t query_floats() const { return 2 * steps_ * step_groups_; }
  [[nodiscard]] std::int64_t value_floats() const {
    return (head_dim_ + V::kWidth - 1) / V::kWidth * kValueTile;
  }

  void store_part(float* row, std::int64_t d, Reg y) const {
    auto* const high = reinterpret_cast<std::uint8_t*>(row) + d;
    V::store_planes(high, high + plane_floats() * kFloat, y);
  }

  /// Zeros beyond the head, so that nothing there counts, whatever the bytes of keys are.
  void pack_queries(float* rows, std::int64_t count, float* to, std::int64_t lanes) const {
    const std::int64_t groups = steps_ * step_groups_;
    for (std::int64_t i = 0; i < V::kWidth; ++i) clear_behind(rows + i * row_floats(), i < count);
    for (std::int64_t plane = 0; plane < 2; ++plane) {
      for (std::int64_t g = 0; g < groups; g += V::kWidth) {
        Reg block[V::kWidth];
        load_block<V>(rows + plane * plane_floats() + g, row_floats(), V::kWidth, groups - g,
                      block);
        V::transpose(block);
        for (int i = 0; i < V::kWidth && g + i < groups; ++i)
          V::store(to + (plane * groups + g + i) * lanes, block[i]);
      }
    }
  }

  /// Numbers in place of a key that does not exist have a weight of 0.
  void pack_values(const float* from, std::int64_t stride, std::int64_t count, const float* steps,
                   float* to) const {
    for (std::int64_t d = 0; d < head_dim_; d += V::kWidth, to += kValueTile) {
      for (std::int64_t group = 0; 4 * group < count; group += V::kWidth) {
        float high[V::kWidth * V::kWidth];
        float low[V::kWidth * V::kWidth];
        for (std::int64_t i = 0; i < V::kWidth; ++i) {
          const std::int64_t key = 4 * (group + i);
          pack_group(from + key * stride + d, stride, count - key, head_dim_ - d,
                     V::load(steps + d), high + i * V::kWidth, low + i * V::kWidth);
        }
        float* const step = to + group / kAmxRows * kValueStep + group % kAmxRows;
        store_transposed(high, step);
        store_transposed(low, step + kValueStep / 2);
      }
    }
  }

  template <int kVectors>
  void scores(const float* keys, const float* key_scale, const float* queries, std::int64_t count,
              float* scores, Reg (&max)[kVectors]) {
    constexpr std::int64_t kLanes = kVectors * V::kWidth;
    shape(step_groups_, kAmxRows);
    Sums sums[2];
    int turn = 0;
    const auto finish = [&](std::int64_t key, int c, const Sums& sum) {
      float* const to = scores + key * kLanes + c * V::kWidth;
      Reg top = max[c];
#pragma GCC unroll 16
      for (int r = 0; r < kAmxRows; ++r) {
        const Reg score = V::mul(V::to_float(joined(sum, r)), V::broadcast(key_scale[key + r]));
        V::store(to + r * kLanes, score);
        top = V::max(top, score);
      }
      max[c] = top;
    };
    for (std::int64_t key = 0; key < count; key += kAmxRows) {
      const Operand left{keys + key * row_floats(), plane_floats(), row_floats(), step_groups_};
      for (int c = 0; c < kVectors; ++c) {
        multiply(left,
                 {queries + c * V::kWidth, steps_ * step_groups_ * kLanes, kLanes,
                  step_groups_ * kLanes},
                 steps_, sums[turn]);
        if (c > 0) {
          finish(key, c - 1, sums[1 - turn]);
        } else if (key > 0) {
          finish(key - kAmxRows, kVectors - 1, sums[1 - turn]);
        }
        turn = 1 - turn;
      }
    }
    finish((count - 1) / kAmxRows * kAmxRows, kVectors - 1, sums[1 - turn]);
  }

  template <int kVectors>
  static void store_weights(float* weights, std::int64_t group, int c, const Int (&pairs)[2]) {
    constexpr std::int64_t kLanes = kVectors * V::kWidth;
    float* const to = weights + 2 * group * kLanes + c * V::kWidth;
    V::store_int(to, V::high_bytes(pairs[0], pairs[1]));
    V::store_int(to + kLanes, V::low_bytes(pairs[0], pairs[1]));
  }
  template <int kVectors>
  static void complete_weights(float* weights, std::int64_t groups) {
    for (; groups % kAmxRows != 0; ++groups) {
      for (int c = 0; c < 2 * kVectors; ++c)
        V::store(weights + (2 * groups * kVectors + c) * V::kWidth, V::broadcast(0.0f));
    }
  }

  template <int kVectors>
  void values(const float* values, const float* scale, const float* weights, std::int64_t groups,
              bool first, const StepWeights<V, kVectors>& factors, float* out) {
    constexpr std::int64_t kLanes = kVectors * V::kWidth;
    const std::int64_t steps = (groups + kAmxRows - 1) / kAmxRows;
    shape(kAmxRows, V::kWidth);
    Sums sums[2];
    int turn = 0;
    const auto finish = [&](std::int64_t d, int c, const Sums& sum) {
      const std::int64_t rows = head_dim_ - d < V::kWidth ? head_dim_ - d : V::kWidth;
      for (std::int64_t r = 0; r < rows; ++r) {
        add_values<V>(joined(sum, r), scale[d + r], first, factors.before[c], factors.block[c],
                      out + (d + r) * kLanes + c * V::kWidth);
      }
    };
    for (std::int64_t d = 0; d < head_dim_; d += V::kWidth, values += kValueTile) {
      const Operand left{values, kValueStep / 2, kAmxRows, kValueStep};
      for (int c = 0; c < kVectors; ++c) {
        multiply(left, {weights + c * V::kWidth, kLanes, 2 * kLanes, 2 * kAmxRows * kLanes}, steps,
                 sums[turn]);
        if (c > 0) {
          finish(d, c - 1, sums[1 - turn]);
        } else if (d > 0) {
          finish(d - V::kWidth, kVectors - 1, sums[1 - turn]);
        }
        turn = 1 - turn;
      }
    }
    finish((head_dim_ - 1) / V::kWidth * V::kWidth, kVectors - 1, sums[1 - turn]);
  }

 private:
  static constexpr std::int64_t kFloat = sizeof(float);
  static constexpr std::int64_t kValueStep = 2 * V::kWidth * kAmxRows;  // both planes of 64 keys
  static constexpr std::int64_t kValueTile = kKeyBlock / 4 / kAmxRows * kValueStep;

  enum Tile : int { kHigh, kMiddle, kLow, kLeftHigh, kLeftLow, kRightHigh, kRightLow, kNumTiles };

  /// The tiles of sums.
  struct alignas(64) Sums {
    std::int32_t of[3][kAmxRows * V::kWidth];
  };

  /// The places of the tiles of a factor, in floats.
  struct Operand {
    const float* high;
    std::int64_t low;     ///< from those of the high bytes to those of the low ones
    std::int64_t stride;  ///< of the rows of a tile
    std::int64_t step;    ///< from a tile to the next
  };

  [[nodiscard]] std::int64_t plane_floats() const { return steps_ * kAmxBytes / kFloat; }

  /// @param groups of 4 numbers in a step. @param rows of the left factor and of sums.
  void shape(std::int64_t groups, std::int64_t rows) {
    if (groups == groups_ && rows == rows_) return;
    groups_ = groups;
    rows_ = rows;
    TileShapes shapes;
    for (int tile = 0; tile < kNumTiles; ++tile) {
      const bool is_left = tile == kLeftHigh || tile == kLeftLow;
      const bool is_right = tile == kRightHigh || tile == kRightLow;
      shapes.rows[tile] = static_cast<std::uint8_t>(is_right ? groups : rows);
      shapes.bytes[tile] = static_cast<std::uint16_t>(kFloat * (is_left ? groups : V::kWidth));
    }
    Instructions::configure(shapes);
  }

  static void multiply(const Operand& x, const Operand& y, std::int64_t steps, Sums& sums) {
    using I = Instructions;
    I::template clear<kHigh>();
    I::template clear<kMiddle>();
    I::template clear<kLow>();
    const float* left = x.high;
    const float* right = y.high;
    for (std::int64_t step = 0; step < steps; ++step, left += x.step, right += y.step) {
      I::template load<kLeftHigh>(left, x.stride * kFloat);
      I::template load<kRightHigh>(right, y.stride * kFloat);
      I::template load<kRightLow>(right + y.low, y.stride * kFloat);
      I::template load<kLeftLow>(left + x.low, x.stride * kFloat);
      I::template multiply_su<kMiddle, kLeftHigh, kRightLow>();
      I::template multiply_ss<kHigh, kLeftHigh, kRightHigh>();
      I::template multiply_uu<kLow, kLeftLow, kRightLow>();
      I::template multiply_us<kMiddle, kLeftLow, kRightHigh>();
    }
    I::template store<kHigh>(sums.of[0], V::kWidth * kFloat);
    I::template store<kLow>(sums.of[2], V::kWidth * kFloat);
    I::template store<kMiddle>(sums.of[1], V::kWidth * kFloat);
  }

  static Int joined(const Sums& sums, std::int64_t row) {
    const std::int64_t at = row * V::kWidth;
    return V::join(V::load_int(sums.of[0] + at), V::load_int(sums.of[1] + at),
                   V::load_int(sums.of[2] + at));
  }

  /// Bytes of a row behind its head, or all of them.
  void clear_behind(float* row, bool exists) const {
    const std::int64_t from = exists ? head_dim_ : 0;
    for (std::int64_t plane = 0; plane < 2; ++plane) {
      auto* const bytes = reinterpret_cast<std::uint8_t*>(row + plane * plane_floats());
      for (std::int64_t i = from; i < plane_floats() * kFloat; ++i) bytes[i] = 0;
    }
  }

  /// Four keys, of which `count` exist, times kWidth components.
  static void pack_group(const float* from, std::int64_t stride, std::int64_t count,
                         std::int64_t components, Reg steps, float* high, float* low) {
    Reg numbers[4];
    for (int i = 0; i < 4; ++i) {
      numbers[i] = i < count ? V::mul(load_part<V>(from + i * stride, components), steps)
                             : V::broadcast(0.0f);
    }
    const Int pairs[2] = {V::pair(numbers[0], numbers[1]), V::pair(numbers[2], numbers[3])};
    V::store_int(high, V::high_bytes(pairs[0], pairs[1]));
    V::store_int(low, V::low_bytes(pairs[0], pairs[1]));
  }

  /// [kWidth groups][kWidth components] to rows of components, kAmxRows groups apart.
  static void store_transposed(const float* from, float* to) {
    Reg block[V::kWidth];
    for (int i = 0; i < V::kWidth; ++i) block[i] = V::load(from + i * V::kWidth);
    V::transpose(block);
    for (int i = 0; i < V::kWidth; ++i) V::store(to + i * kAmxRows, block[i]);
  }

  std::int64_t head_dim_;
  std::int64_t steps_;        // of the scores
  std::int64_t step_groups_;  // of 4 components in each
  std::int64_t groups_ = 0;   // that tiles are shaped for
  std::int64_t rows_ = 0;
};

}  // namespace fovea::cpu
