// The instruction sets of x86.
#include "ops/cpu/isa/isa_kernels.h"

namespace fovea::cpu {

std::span<const IsaUnit* const> isa_units() noexcept {
  static constexpr const IsaUnit* kUnits[] = {&kPortableUnit, &kAvx2Unit,       &kAvxVnniUnit,
                                              &kAvx512Unit,   &kAvx512VnniUnit, &kAvx512Bf16Unit,
                                              &kAmxUnit};
  return kUnits;
}

}  // namespace fovea::cpu
