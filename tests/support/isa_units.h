#pragma once

#include <vector>

#include "ops/cpu/isa/isa_kernels.h"

namespace fovea::test {

/// The units whose kernels this machine can run, also those that it has no use for.
inline std::vector<const cpu::IsaUnit*> units_of_this_machine() {
  std::vector<const cpu::IsaUnit*> units;
  for (const cpu::IsaUnit* const unit : cpu::isa_units())
    if (cpu::has_all(cpu::cpu_features(), unit->required)) units.push_back(unit);
  return units;
}

}  // namespace fovea::test
