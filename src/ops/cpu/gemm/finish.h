#pragma once

// The last steps of a layer, from sums in f32 to the output. Include only from the unit of an
// instruction set.

#include "ops/cpu/gemm/task.h"
#include "ops/cpu/simd/activation.h"

namespace fovea::cpu {

/// out = residual + y for up to one vector of neighbouring columns, of which `count` exist.
/// @param residual or null.
template <class V>
void store_result(typename V::Reg y, const float* residual, float* out, std::int64_t count) {
  if (count >= V::kWidth) {
    if (residual != nullptr) y = V::add(V::load(residual), y);
    V::store(out, y);
  } else {
    if (residual != nullptr) y = V::add(V::load_some(residual, count), y);
    V::store_some(out, y, count);
  }
}

/// out = residual + activation(sum + bias) for one row of a panel.
/// @param column the first one, of the task. @param sums [kPanelColumns]
template <class V, ops::Activation kActivation>
void finish_row(const GemmTask& task, std::int64_t row, std::int64_t column, const float* sums) {
  const std::int64_t left = task.columns - column;
  const std::int64_t columns = left < kPanelColumns ? left : kPanelColumns;
  const float* const bias = task.bias + column;
  const float* const residual =
      task.residual == nullptr ? nullptr : task.residual + row * task.residual_stride + column;
  float* const out = task.out + row * task.out_stride + column;
  for (std::int64_t c = 0; c < columns; c += V::kWidth) {
    const typename V::Reg sum = V::add(V::load(sums + c), V::load(bias + c));
    store_result<V>(activate<V, kActivation>(sum), residual == nullptr ? nullptr : residual + c,
                    out + c, columns - c);
  }
}

}  // namespace fovea::cpu
