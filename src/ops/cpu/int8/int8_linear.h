#pragma once

#include <cstddef>

#include "fovea/tower/device/device.h"
#include "fovea/tower/ops/linear.h"
#include "ops/cpu/int8/task.h"

namespace fovea::cpu {

// Linear layers in integers of 8 bits. Weights: W[n, k] ~ c[n] + s[n] q[n, k], q in [-127, 127],
// from the smallest weight of a row to its largest, c in the middle. Rows: x[r, k] ~ m[r] +
// t[r] p[r, k], p in [0, 255], from the smallest number of a row, or 0, to its largest, or 0. Where
// this leaves out up to 8 wide numbers of at least 256, an end is halved, again and again; p of a
// wide number has more than 8 bits. Then
//   x W^T [r, n] ~ s[n] (t[r] sum_k p[r, k] q[n, k] + m[r] sum_k q[n, k])
//                  + c[n] sum_k (m[r] + t[r] p[r, k]),
// with all sums of integers in 32 bits, where they are exact. Source: Jacob et al., "Quantization
// and Training of Neural Networks for Efficient Integer-Arithmetic-Only Inference",
// arXiv:1712.05877, section 2.

/// Whether a layer is small enough for sums of 32 bits.
[[nodiscard]] bool suits_int8(const ConstTensorView& weight);

/// Packs weight and bias for cpu::int8_linear; the layout is the same for every instruction set.
[[nodiscard]] ops::PackedLinear pack_int8(Device& device, ConstTensorView weight,
                                          ConstTensorView bias);

/// Bytes of the quantized rows of x, the workspace of int8_linear.
[[nodiscard]] std::size_t int8_workspace(const ops::LinearArgs& args);

/// Submits one linear layer with weights of pack_int8 to a CpuStream. A row with an infinity or NaN
/// gives NaN. GELU is approximated to 1.1e-6 (1 + |x|). The bits are the same for every leaf, and
/// for a row whatever else is in the batch.
/// @param workspace int8_workspace bytes.
void int8_linear(Stream& stream, const ops::LinearArgs& args, TensorView workspace,
                 const Int8Leaf& leaf);

}  // namespace fovea::cpu
