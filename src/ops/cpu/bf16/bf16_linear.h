#pragma once

#include <cstddef>

#include "fovea/tower/device/device.h"
#include "fovea/tower/ops/linear.h"
#include "ops/cpu/bf16/task.h"

namespace fovea::cpu {

// Linear layers of numbers in bf16 with sums in f32. Weights are rounded when they are packed, rows
// when they come; bias, activation and residual are f32. Denormal operands and results are zero, as
// in kTowerFloatMode (core/float_mode.h). Products are summed up in one of two orders:
// - With AMX as TDPBF16PS does it. k ascends in steps of 32 values, with zeros behind the last. Of
// a
//   step, the even and the odd k are two chains of fused multiply-adds from zero; the two are
//   added, then their sum to that of the steps before.
// - Without it as VDPBF16PS does it: every element is one chain of fused multiply-adds, pair of k
// by
//   pair of k ascending, in a pair the second k first.
// Source: Intel 64 and IA-32 Architectures Software Developer's Manual, volume 2, TDPBF16PS,
// VDPBF16PS and VCVTNEPS2BF16. The tests found Zen 5 to compute what it says of the latter two, bit
// by bit.

/// Packs weight and bias for cpu::bf16_linear; the layout is the same for every instruction set.
[[nodiscard]] ops::PackedLinear pack_bf16(Device& device, ConstTensorView weight,
                                          ConstTensorView bias);

/// Bytes of the rounded rows of x, the workspace of bf16_linear.
[[nodiscard]] std::size_t bf16_workspace(const ops::LinearArgs& args);

/// Submits one linear layer with weights of pack_bf16 to a CpuStream. The bits are the same for all
/// leaves without AMX, and with every leaf for a row whatever else is in the batch; which NaN a NaN
/// is may differ.
/// @param workspace bf16_workspace bytes.
void bf16_linear(Stream& stream, const ops::LinearArgs& args, TensorView workspace,
                 const Bf16Leaf& leaf);

}  // namespace fovea::cpu
