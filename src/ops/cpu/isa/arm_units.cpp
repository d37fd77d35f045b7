// The instruction sets of 64-bit ARM.
#include "ops/cpu/isa/isa_kernels.h"

namespace fovea::cpu {

std::span<const IsaUnit* const> isa_units() noexcept {
  static constexpr const IsaUnit* kUnits[] = {&kPortableUnit, &kNeonUnit, &kNeonDotProdUnit,
                                              &kNeonI8mmUnit, &kNeonBf16Unit};
  return kUnits;
}

}  // namespace fovea::cpu
