// In the place of attention/cudnn.cpp where cuDNN's headers were not found.
#include "core/check.h"
#include "ops/cuda/attention/cudnn.h"

namespace fovea::cuda {

struct CudnnAttention::Impl {};

namespace {

[[noreturn]] void refuse() {
  throw Error(ErrorCode::kUnsupported,
              "attention cudnn: this build has no support for it; configure it again where "
              "cudnn_graph.h of cuDNN 9.15 or newer is found");
}

}  // namespace

CudnnAttention::CudnnAttention(int) { refuse(); }

CudnnAttention::~CudnnAttention() = default;

std::string CudnnAttention::software() { refuse(); }

bool CudnnAttention::accepts(const AttentionWork&) { return false; }

std::size_t CudnnAttention::workspace_bytes(const AttentionWork&) const { return 0; }

void CudnnAttention::run(CudaStream&, const AttentionWork&, int) const {}

}  // namespace fovea::cuda
