#pragma once

#include <cstddef>

#include "fovea/tower/device/device.h"
#include "fovea/tower/ops/linear.h"
#include "ops/cpu/bf16/task.h"
#include "ops/cpu/cpu_kernels.h"

namespace fovea::cpu {

// Linear layers of numbers in bf16 with sums in f32. Weights are rounded when they are packed, rows
// when they come; bias, activation and residual are f32. Every element is one chain of fused
// multiply-adds, pair of k by pair of k ascending, in a pair the second k first, as VDPBF16PS does
// it. Denormal operands and results are zero, as in kTowerFloatMode (core/float_mode.h).
// Source: Intel 64 and IA-32 Architectures Software Developer's Manual, volume 2, VDPBF16PS and
// VCVTNEPS2BF16. The tests found Zen 5 to compute what it says, bit by bit.

/// The fastest leaf of this machine that needs no more than `isa`.
[[nodiscard]] const Bf16Leaf& bf16_leaf(CpuIsa isa);

/// Packs weight and bias for cpu::bf16_linear; the layout is the same for every instruction set.
[[nodiscard]] ops::PackedLinear pack_bf16(Device& device, ConstTensorView weight,
                                          ConstTensorView bias);

/// Bytes of the rounded rows of x, the workspace of bf16_linear.
[[nodiscard]] std::size_t bf16_workspace(const ops::LinearArgs& args);

/// Submits one linear layer with weights of pack_bf16 to a CpuStream. The bits are the same for
/// every `isa`, and for a row whatever else is in the batch; which NaN a NaN is may differ.
/// @param workspace bf16_workspace bytes.
void bf16_linear(Stream& stream, const ops::LinearArgs& args, TensorView workspace, CpuIsa isa);

}  // namespace fovea::cpu
