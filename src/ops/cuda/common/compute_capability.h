#pragma once

#include <string>

namespace fovea::cuda {

/// Why this build cannot use a GPU of compute capability `major`.`minor`; empty if it can. The
/// kernels are compiled for sm_90a, whose instructions neither older nor newer GPUs have.
[[nodiscard]] inline std::string refusal_of_compute(int major, int minor) {
  return major == 9 && minor == 0 ? "" : "this build has kernels for compute 9.0 only";
}

}  // namespace fovea::cuda
