// The Hopper attention kernel for E4M3, for the same head dims.
#include "ops/cuda/attention/wgmma_kernel.cuh"

namespace fovea::cuda {

void launch_attention_e4m3(CudaStream& stream, const AttentionWork& work, int num_sms) {
  const DeviceGuard guard(stream.device_index());
  HopperHeadDims::choose(work.head_dim, [&](auto dim) {
    hopper_attention::launch_dim<HeadFormat::kE4M3, dim>(stream, work, num_sms);
  });
}

}  // namespace fovea::cuda
