#pragma once

#include <cstddef>

#include "fovea/tower/device/device.h"
#include "fovea/tower/ops/linear.h"
#include "ops/cpu/gemm/task.h"

namespace fovea::cpu {

// Linear layers on the CPU. A row has the same bits whatever else is in the batch. Which bits those
// are depends on the format.
//
// kF32
// Weights are f32, or bf16 where the checkpoint has bf16, and widened when they are read. Every
// element is one chain of multiply-adds with k ascending; units with fused ones round once.
//
// kBf16
// Numbers are bf16, sums f32. Weights are rounded when they are packed, rows when they come; bias,
// activation and residual are f32. Denormal operands and results are zero, as in kTowerFloatMode
// (core/float_mode.h). Products are summed up in one of three orders:
// - With AMX as TDPBF16PS does it. k ascends in steps of 32 values, with zeros behind the last. Of
//   a step, the even and the odd k are two chains of fused multiply-adds from zero; the two are
//   added, then their sum to that of the steps before.
// - With BFMMLA of ARM as it does it. k ascends in steps of 4 values, with zeros behind the last,
//   pair by pair: the two products of a pair are added, then their sum to that of the pairs before.
//   Additions round to odd: toward zero, but the last bit is set where that is not exact.
// - With neither as VDPBF16PS does it: every element is one chain of fused multiply-adds, pair of
//   k by pair of k ascending, in a pair the second k first.
// The bits are the same for all units with neither; which NaN a NaN is may differ.
// Sources: Intel 64 and IA-32 Architectures Software Developer's Manual, volume 2, TDPBF16PS,
// VDPBF16PS and VCVTNEPS2BF16 (the tests found Zen 5 to compute what it says of the latter two, bit
// by bit); Arm Architecture Reference Manual for A-profile, BFMMLA with FPCR.EBF zero.
//
// kInt8
// Weights are W[n, k] ~ c[n] + s[n] q[n, k], q in [-127, 127], from the smallest weight of a row to
// its largest, c in the middle. Rows are x[r, k] ~ m[r] + t[r] p[r, k], p in [0, 255], from the
// smallest number of a row, or 0, to its largest, or 0. In a row of at least 256 numbers an end of
// the range is halved, again and again, while at most 8 numbers, the outliers, lie outside; p of an
// outlier has more than 8 bits. Then
//   x W^T [r, n] ~ s[n] (t[r] sum_k p[r, k] q[n, k] + m[r] sum_k q[n, k])
//                  + c[n] sum_k (m[r] + t[r] p[r, k]),
// with all sums of integers in 32 bits, where they are exact. A row with an infinity or NaN gives
// NaN, as does a column of weights with one. GELU is approximated to 1.1e-6 (1 + |x|). The bits are
// the same for all units.
// Source: Jacob et al., "Quantization and Training of Neural Networks for Efficient
// Integer-Arithmetic-Only Inference", arXiv:1712.05877, section 2.

/// Most values of k in kInt8: sums of so many products of [0, 255] and [-127, 127] stay below 2^31.
inline constexpr std::int64_t kMaxInt8Features = 65536;

/// Packs weight and bias for linear() with kernels of this format: the body of
/// Kernels::pack_linear. The layout is the same for every instruction set.
[[nodiscard]] ops::PackedLinear pack_linear(Device& device, ConstTensorView weight,
                                            ConstTensorView bias, GemmFormat format);

/// Bytes of the rows of x in this format, the workspace of linear(); none in kF32.
[[nodiscard]] std::size_t linear_workspace(const ops::LinearArgs& args, GemmFormat format);

/// Submits one linear layer to a CpuStream: the body of Kernels::linear. The number of live rows is
/// read when the work runs; no number of rows costs more than its arithmetic. Running allocates
/// nothing, but for the scratch memory that a thread keeps.
/// @param workspace linear_workspace bytes, aligned to 64.
/// @param kernel of the format that the weights are packed for.
void linear(Stream& stream, const ops::LinearArgs& args, TensorView workspace,
            const GemmKernel& kernel);

}  // namespace fovea::cpu
