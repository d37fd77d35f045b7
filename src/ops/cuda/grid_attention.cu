// Attention with decomposed relative positions.
#include "core/check.h"
#include "ops/cuda/cuda_kernels.h"

namespace fovea::cuda {

std::size_t CudaKernels::grid_attention_workspace(const ops::GridAttentionArgs&) const { return 0; }

void CudaKernels::grid_attention(Stream&, const ops::GridAttentionArgs&) const {
  FOVEA_CHECK(false, kUnsupported,
              "the GPU backend has no attention with relative positions; use --device cpu");
}

}  // namespace fovea::cuda
