// Choice of the leaf.
#include "ops/cpu/vector/vector_kernels.h"

namespace fovea::cpu {

const VectorKernels& vector_kernels(CpuIsa isa) noexcept {
  switch (isa) {
    case CpuIsa::kPortable: return kVectorKernelsPortable;
    case CpuIsa::kAvx2: return kVectorKernelsAvx2;
    case CpuIsa::kAvx512: return kVectorKernelsAvx512;
  }
  return kVectorKernelsPortable;
}

}  // namespace fovea::cpu
