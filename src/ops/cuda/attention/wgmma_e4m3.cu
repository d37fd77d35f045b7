// The Hopper attention kernel for E4M3, in a unit of its own so that the two compile side by side.
#include "ops/cuda/attention/wgmma_kernel.cuh"

namespace fovea::cuda {

void launch_attention_e4m3(CudaStream& stream, const AttentionWork& work, int num_sms) {
  hopper_attention::launch_format<HeadFormat::kE4M3>(stream, work, num_sms);
}

}  // namespace fovea::cuda
