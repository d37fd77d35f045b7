#pragma once

#include <cstdint>

#include "fovea/tower/ops/linear.h"

// The seam between the row-wise ops and their kernels in the units of instruction sets: plain data
// and function pointers. Nothing here has an inline body, so the linker never keeps a copy compiled
// for an instruction set that the machine may lack.
namespace fovea::cpu {

/// `rows` neighbouring rows of a normalisation; out may be x or residual. rms_norm has no bias.
struct NormTask {
  const float* x;
  const float* weight;
  const float* bias;
  const float* residual;  ///< or null: nothing is added
  float epsilon;
  std::int64_t rows;
  std::int64_t cols;
  float* out;
};

/// layer_norm or rms_norm of neighbouring rows.
using NormRows = void (*)(const NormTask& task);
/// Rotates `num_heads` neighbouring vectors of `head_dim` floats by the angles of one row.
using RotateHeads = void (*)(float* x, const float* cos, const float* sin, std::int64_t num_heads,
                             std::int64_t head_dim);
/// x[c] += sum over i of weights[i] * rows[i][c], i ascending.
using AddWeighted4 = void (*)(const float* const rows[4], const float weights[4], float* x,
                              std::int64_t cols);
/// x[c] = activation(x[c]).
using ActivateRow = void (*)(ops::Activation activation, float* x, std::int64_t cols);
/// out[c] = activation(min(gate[c], limit)) * max(min(up[c], limit), -limit).
using GateRow = void (*)(ops::Activation activation, float limit, const float* gate,
                         const float* up, float* out, std::int64_t cols);

/// One head of a query and the keys that it attends to.
struct AttendTask {
  const float* q;  ///< [head_dim]
  const float* k;  ///< of the first key; the next is `stride` floats further on
  const float* v;  ///< the same of values
  std::int64_t num_keys;
  std::int64_t stride;
  std::int64_t head_dim;
  float scale;
  float* out;  ///< [head_dim]
};

/// out[c] = sum over keys j of softmax_j(scale * q . k_j) v_j[c]; zeros without keys.
using AttendQuery = void (*)(const AttendTask& task);

/// The row-wise kernels of a unit.
struct RowKernels {
  NormRows layer_norm;
  NormRows rms_norm;
  RotateHeads rotate;
  AddWeighted4 add_weighted4;
  ActivateRow activate;
  GateRow gate;
  AttendQuery attend;
};

}  // namespace fovea::cpu
