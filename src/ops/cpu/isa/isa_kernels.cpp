// The choice among the kernels of instruction sets, whose tables are in x86_units.cpp and
// arm_units.cpp.
#include "ops/cpu/isa/isa_kernels.h"

namespace fovea::cpu {

IsaKernels choose_kernels(CpuFeatures available) noexcept {
  IsaKernels best = kPortableUnit.kernels;
  for (const IsaUnit* const unit : isa_units()) {
    if (!has_all(available, unit->required | unit->worthwhile)) continue;
    const IsaKernels& kernels = unit->kernels;
    if (kernels.rows.layer_norm != nullptr) best.rows = kernels.rows;
    if (kernels.attention.run != nullptr) best.attention = kernels.attention;
    if (kernels.f32.multiply != nullptr) best.f32 = kernels.f32;
    if (kernels.bf16.multiply != nullptr) best.bf16 = kernels.bf16;
    if (kernels.int8.multiply != nullptr) best.int8 = kernels.int8;
    if (kernels.attention16.run != nullptr) best.attention16 = kernels.attention16;
    if (kernels.attention_bf16.run != nullptr) best.attention_bf16 = kernels.attention_bf16;
  }
  return best;
}

}  // namespace fovea::cpu

namespace fovea {

const char* to_string(CpuIsa isa) noexcept {
  switch (isa) {
    case CpuIsa::kPortable: return "portable";
    case CpuIsa::kAvx2: return "avx2";
    case CpuIsa::kAvx512: return "avx512";
    case CpuIsa::kNeon: return "neon";
  }
  return "unknown";
}

}  // namespace fovea
