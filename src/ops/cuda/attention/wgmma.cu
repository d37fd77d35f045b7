// The Hopper attention kernel for bf16.
#include "ops/cuda/attention/wgmma_kernel.cuh"

namespace fovea::cuda {

bool has_attention_wgmma(const AttentionWork& work) {
  constexpr int kMaxSequences = 2048;  // their table takes 8 KB of shared memory
  return HopperHeadDims::contains(work.head_dim) && work.max_seqs <= kMaxSequences;
}

void launch_attention_wgmma(CudaStream& stream, const AttentionWork& work, int num_sms) {
  if (work.format == HeadFormat::kE4M3) return launch_attention_e4m3(stream, work, num_sms);
  hopper_attention::launch_format<HeadFormat::kBf16>(stream, work, num_sms);
}

}  // namespace fovea::cuda
