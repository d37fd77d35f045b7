#pragma once

// Biases of grid attention, written once for all instruction sets. Include after one simd/<isa>.h;
// every function is a template over its local type.
//
// A bias is q . entry of a table, and the entries that a query needs for all rows (or columns) of
// keys are neighbours. With the table transposed they are vectors: one multiply-add per vector and
// component of q, with no sum across lanes. Queries that stand next to each other in a row of the
// grid share the entries of the rows, so some of them go through the components together.

#include <cstdint>

#include "ops/cpu/attention/task.h"

namespace fovea::cpu {

/// Entries [first, first + kWidth) of rows and columns for kQueries neighbouring queries.
template <class V, int kQueries>
void grid_bias_step(const GridBiasTask& task, std::int64_t query, std::int64_t first) {
  using Reg = typename V::Reg;
  const float* q = task.q + query * task.q_stride;
  const float* by_row = task.by_row + first;
  const float* by_col = task.by_col + first - query;
  Reg rows[kQueries];
  Reg cols[kQueries];
  for (int i = 0; i < kQueries; ++i) rows[i] = cols[i] = V::broadcast(0.0f);
  for (std::int64_t d = 0; d < task.head_dim; ++d) {
    const Reg row = V::load(by_row);
#pragma GCC unroll 4
    for (int i = 0; i < kQueries; ++i) {
      const Reg component = V::broadcast(q[i * task.q_stride + d]);
      rows[i] = V::fma(component, row, rows[i]);
      cols[i] = V::fma(component, V::load(by_col - i), cols[i]);
    }
    by_row += task.row_stride;
    by_col += task.col_stride;
  }
  const auto store = [&](float* to, Reg a, std::int64_t left) {
    if (left > 0) V::store_some(to + first, a, left < V::kWidth ? left : V::kWidth);
  };
  for (int i = 0; i < kQueries; ++i) {
    float* const out = task.out + (query + i) * (task.rows + task.cols);
    store(out, rows[i], task.rows - first);
    store(out + task.rows, cols[i], task.cols - first);
  }
}

template <class V>
void grid_bias(const GridBiasTask& task) {
  constexpr int kQueries = 4;
  const std::int64_t entries = task.rows > task.cols ? task.rows : task.cols;
  for (std::int64_t first = 0; first < entries; first += V::kWidth) {
    std::int64_t query = 0;
    for (; query + kQueries <= task.num_queries; query += kQueries)
      grid_bias_step<V, kQueries>(task, query, first);
    for (; query < task.num_queries; ++query) grid_bias_step<V, 1>(task, query, first);
  }
}

}  // namespace fovea::cpu
