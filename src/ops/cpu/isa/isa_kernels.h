#pragma once

#include <span>

#include "ops/cpu/attention/task.h"
#include "ops/cpu/gemm/task.h"
#include "ops/cpu/isa/cpu_features.h"
#include "ops/cpu/rowwise/row_kernels.h"

// Every instruction set has one translation unit, isa/<name>.cpp, compiled for it and no other: it
// includes the bodies that gain by it. Units share no code with the rest: what they include is
// declarations, or templates over a type that is local to the unit, so that the linker never keeps
// a copy that was compiled for an instruction set that the machine may lack.
namespace fovea::cpu {

/// The kernels of a unit, or the best ones of a machine. Null where a unit has none of a kind.
struct IsaKernels {
  RowKernels rows;
  AttentionKernel attention;
  AttentionKernel attention16;
  AttentionKernel attention_bf16;  ///< of AMX alone
  GemmKernel f32;
  GemmKernel bf16;
  GemmKernel int8;
};

struct IsaUnit {
  const char* name;
  CpuFeatures required;    ///< to run its kernels
  CpuFeatures worthwhile;  ///< for them to be faster than those of the units before
  IsaKernels kernels;
};

extern const IsaUnit kPortableUnit;
extern const IsaUnit kAvx2Unit;
extern const IsaUnit kAvxVnniUnit;
extern const IsaUnit kAvx512Unit;
extern const IsaUnit kAvx512VnniUnit;
extern const IsaUnit kAvx512Bf16Unit;
extern const IsaUnit kAmxUnit;
extern const IsaUnit kNeonUnit;
extern const IsaUnit kNeonDotProdUnit;
extern const IsaUnit kNeonI8mmUnit;
extern const IsaUnit kNeonBf16Unit;

/// All units of this architecture. Kernels of the later ones are faster.
[[nodiscard]] std::span<const IsaUnit* const> isa_units() noexcept;

[[nodiscard]] constexpr bool has_all(CpuFeatures available, CpuFeatures wanted) noexcept {
  return (available & wanted) == wanted;
}

/// Of every kind the kernel of the last unit that has one, needs no more than `available` and is
/// worthwhile there.
[[nodiscard]] IsaKernels choose_kernels(CpuFeatures available) noexcept;

}  // namespace fovea::cpu
