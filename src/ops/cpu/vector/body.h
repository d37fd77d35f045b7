#pragma once

// All kernels of a vector type V. Include only from the unit of an instruction set.

#include "ops/cpu/attention_body.h"
#include "ops/cpu/grid_body.h"
#include "ops/cpu/row_bodies.h"

namespace fovea::cpu {

template <class V>
constexpr VectorKernels make_vector_kernels() {
  return {
      .grid_bias = &grid_bias<V>,
      .exp2 = &exp2_array<V>,
      .layer_norm = &layer_norm_rows<V>,
      .rms_norm = &rms_norm_rows<V>,
      .rotate = &rotate_heads<V>,
      .add_weighted4 = &add_weighted4_row<V>,
      .activate = &activate_row<V>,
      .gate = &gate_row<V>,
  };
}

}  // namespace fovea::cpu
