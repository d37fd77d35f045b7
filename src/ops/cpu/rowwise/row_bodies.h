#pragma once

// Row-wise ops, written once for all instruction sets. Include after simd/<isa>.h; every function
// is a template over its local type.

#include <cstdint>

#include "ops/cpu/rowwise/row_kernels.h"
#include "ops/cpu/simd/activation.h"

namespace fovea::cpu {

/// Calls body(column, count) for vectors that cover [0, cols); only the last may be incomplete.
template <class V, class F>
void for_vectors(std::int64_t cols, const F& body) {
  std::int64_t c = 0;
  for (; c + V::kWidth <= cols; c += V::kWidth) body(c, std::int64_t{V::kWidth});
  if (c < cols) body(c, cols - c);
}

template <class V>
typename V::Reg load_up_to(const float* from, std::int64_t count) {
  return count == V::kWidth ? V::load(from) : V::load_some(from, count);
}

template <class V>
void store_up_to(float* to, typename V::Reg a, std::int64_t count) {
  if (count == V::kWidth) {
    V::store(to, a);
  } else {
    V::store_some(to, a, count);
  }
}

/// Two passes over the row, mean then variance of the centred row: no cancellation.
template <class V>
void layer_norm_rows(const NormTask& task) {
  using Reg = typename V::Reg;
  const auto cols = static_cast<float>(task.cols);
  for (std::int64_t r = 0; r < task.rows; ++r) {
    const float* const x = task.x + r * task.cols;
    const float* const residual =
        task.residual == nullptr ? nullptr : task.residual + r * task.cols;
    float* const out = task.out + r * task.cols;
    Reg sum = V::broadcast(0.0f);
    for_vectors<V>(task.cols, [&](std::int64_t c, std::int64_t count) {
      sum = V::add(sum, load_up_to<V>(x + c, count));
    });
    const Reg mean = V::broadcast(V::sum(sum) / cols);

    Reg squares = V::broadcast(0.0f);
    std::int64_t c = 0;
    for (; c + V::kWidth <= task.cols; c += V::kWidth) {
      const Reg d = V::sub(V::load(x + c), mean);
      squares = V::fma(d, d, squares);
    }
    float variance = V::sum(squares);
    for (; c < task.cols; ++c) {  // lanes beyond the row must not count
      const float d = x[c] - V::sum(sum) / cols;
      variance = V::fma(d, d, variance);
    }
    const Reg scale = V::broadcast(1.0f / __builtin_sqrtf(variance / cols + task.epsilon));

    for_vectors<V>(task.cols, [&](std::int64_t at, std::int64_t count) {
      Reg y = V::mul(V::sub(load_up_to<V>(x + at, count), mean), scale);
      y = V::fma(y, load_up_to<V>(task.weight + at, count), load_up_to<V>(task.bias + at, count));
      if (residual != nullptr) y = V::add(y, load_up_to<V>(residual + at, count));
      store_up_to<V>(out + at, y, count);
    });
  }
}

template <class V>
void rms_norm_rows(const NormTask& task) {
  using Reg = typename V::Reg;
  const auto cols = static_cast<float>(task.cols);
  for (std::int64_t r = 0; r < task.rows; ++r) {
    const float* const x = task.x + r * task.cols;
    const float* const residual =
        task.residual == nullptr ? nullptr : task.residual + r * task.cols;
    float* const out = task.out + r * task.cols;
    Reg squares = V::broadcast(0.0f);
    for_vectors<V>(task.cols, [&](std::int64_t c, std::int64_t count) {
      const Reg a = load_up_to<V>(x + c, count);
      squares = V::fma(a, a, squares);
    });
    const float mean = V::sum(squares) / cols;
    const Reg scale = V::broadcast(1.0f / __builtin_sqrtf(mean + task.epsilon));
    for_vectors<V>(task.cols, [&](std::int64_t c, std::int64_t count) {
      Reg y = V::mul(load_up_to<V>(x + c, count), scale);
      y = V::mul(y, load_up_to<V>(task.weight + c, count));
      if (residual != nullptr) y = V::add(y, load_up_to<V>(residual + c, count));
      store_up_to<V>(out + c, y, count);
    });
  }
}

/// y[j] = x[j] cos[j] - x[j + h] sin[j],  y[j + h] = x[j + h] cos[j] + x[j] sin[j]
template <class V>
void rotate_heads(float* x, const float* cos, const float* sin, std::int64_t num_heads,
                  std::int64_t head_dim) {
  using Reg = typename V::Reg;
  const std::int64_t half = head_dim / 2;
  for (std::int64_t head = 0; head < num_heads; ++head, x += head_dim) {
    for_vectors<V>(half, [&](std::int64_t j, std::int64_t count) {
      const Reg a = load_up_to<V>(x + j, count);
      const Reg b = load_up_to<V>(x + half + j, count);
      const Reg c = load_up_to<V>(cos + j, count);
      const Reg s = load_up_to<V>(sin + j, count);
      store_up_to<V>(x + j, V::fnma(b, s, V::mul(a, c)), count);
      store_up_to<V>(x + half + j, V::fma(b, c, V::mul(a, s)), count);
    });
  }
}

template <class V>
void add_weighted4_row(const float* const rows[4], const float weights[4], float* x,
                       std::int64_t cols) {
  using Reg = typename V::Reg;
  for_vectors<V>(cols, [&](std::int64_t c, std::int64_t count) {
    Reg sum = V::mul(V::broadcast(weights[0]), load_up_to<V>(rows[0] + c, count));
    for (int i = 1; i < 4; ++i)
      sum = V::fma(V::broadcast(weights[i]), load_up_to<V>(rows[i] + c, count), sum);
    store_up_to<V>(x + c, V::add(load_up_to<V>(x + c, count), sum), count);
  });
}

template <class V>
void activate_row(ops::Activation activation, float* x, std::int64_t cols) {
  with_constant(activation, [&]<ops::Activation kActivation>() {
    for_vectors<V>(cols, [&](std::int64_t c, std::int64_t count) {
      store_up_to<V>(x + c, activate<V, kActivation>(load_up_to<V>(x + c, count)), count);
    });
  });
}

/// A limit is the first operand of every comparison, which leaves NaN as it is.
template <class V>
void gate_row(ops::Activation activation, float limit, const float* gate, const float* up,
              float* out, std::int64_t cols) {
  using Reg = typename V::Reg;
  const Reg most = V::broadcast(limit);
  const Reg least = V::broadcast(-limit);
  with_constant(activation, [&]<ops::Activation kActivation>() {
    for_vectors<V>(cols, [&](std::int64_t c, std::int64_t count) {
      const Reg open = activate<V, kActivation>(V::min(most, load_up_to<V>(gate + c, count)));
      const Reg value = V::max(least, V::min(most, load_up_to<V>(up + c, count)));
      store_up_to<V>(out + c, V::mul(open, value), count);
    });
  });
}

/// Keys whose weights are computed together.
inline constexpr std::int64_t kAttendedKeys = 64;

/// weights[j] = scale * q . k_j for `count` keys. @return the largest of them and `largest`.
template <class V>
float score_keys(const AttendTask& task, const float* k, std::int64_t count, float largest,
                 float* weights) {
  for (std::int64_t j = 0; j < count; ++j, k += task.stride) {
    typename V::Reg sum = V::broadcast(0.0f);
    for_vectors<V>(task.head_dim, [&](std::int64_t c, std::int64_t width) {
      sum = V::fma(load_up_to<V>(task.q + c, width), load_up_to<V>(k + c, width), sum);
    });
    weights[j] = task.scale * V::sum(sum);
    largest = largest < weights[j] ? weights[j] : largest;
  }
  return largest;
}

/// Softmax of a stream of blocks of keys: what came before is scaled down to a new maximum.
template <class V>
void attend_query(const AttendTask& task) {
  using Reg = typename V::Reg;
  float weights[kAttendedKeys] = {};
  float largest = -__builtin_huge_valf();
  float total = 0;
  for_vectors<V>(task.head_dim, [&](std::int64_t c, std::int64_t width) {
    store_up_to<V>(task.out + c, V::broadcast(0.0f), width);
  });
  for (std::int64_t first = 0; first < task.num_keys; first += kAttendedKeys) {
    const std::int64_t rest = task.num_keys - first;
    const std::int64_t count = rest < kAttendedKeys ? rest : kAttendedKeys;
    const float most = score_keys<V>(task, task.k + first * task.stride, count, largest, weights);
    const Reg shrink = exponential<V>(V::broadcast(largest - most));
    float first_shrink[V::kWidth];
    V::store(first_shrink, shrink);
    for_vectors<V>(count, [&](std::int64_t j, std::int64_t width) {
      const Reg away = V::sub(load_up_to<V>(weights + j, width), V::broadcast(most));
      store_up_to<V>(weights + j, exponential<V>(away), width);
    });
    total *= first_shrink[0];
    for (std::int64_t j = 0; j < count; ++j) total += weights[j];
    largest = most;
    for_vectors<V>(task.head_dim, [&](std::int64_t c, std::int64_t width) {
      Reg sum = V::mul(load_up_to<V>(task.out + c, width), shrink);
      const float* v = task.v + first * task.stride + c;
      for (std::int64_t j = 0; j < count; ++j, v += task.stride) {
        sum = V::fma(V::broadcast(weights[j]), load_up_to<V>(v, width), sum);
      }
      store_up_to<V>(task.out + c, sum, width);
    });
  }
  if (task.num_keys == 0) return;
  const Reg inverse = V::broadcast(1.0f / total);
  for_vectors<V>(task.head_dim, [&](std::int64_t c, std::int64_t width) {
    store_up_to<V>(task.out + c, V::mul(load_up_to<V>(task.out + c, width), inverse), width);
  });
}

template <class V>
constexpr RowKernels row_kernels() {
  return {.layer_norm = &layer_norm_rows<V>,
          .rms_norm = &rms_norm_rows<V>,
          .rotate = &rotate_heads<V>,
          .add_weighted4 = &add_weighted4_row<V>,
          .activate = &activate_row<V>,
          .gate = &gate_row<V>,
          .attend = &attend_query<V>};
}

}  // namespace fovea::cpu
