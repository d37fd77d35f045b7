// The Hopper attention kernel for bf16, and what both formats can do.
#include <algorithm>
#include <utility>

#include "ops/cuda/attention/wgmma_kernel.cuh"

namespace fovea::cuda {

bool has_attention_wgmma(const AttentionWork& work) {
  if (!HopperHeadDims::contains(work.head_dim)) return false;
  std::size_t most = 0;
  HopperHeadDims::choose(work.head_dim, [&](auto dim) {
    using hopper_attention::most_sequences;
    using hopper_attention::Plan;
    most = std::min(most_sequences<Plan<HeadFormat::kBf16, dim, 2>>(),
                    most_sequences<Plan<HeadFormat::kBf16, dim, 3>>());
    static_assert(most_sequences<Plan<HeadFormat::kE4M3, dim, 2>>() >=
                      most_sequences<Plan<HeadFormat::kBf16, dim, 2>>(),
                  "whichever format is chosen then has room");
  });
  return std::cmp_less_equal(work.max_seqs, most);
}

void launch_attention_wgmma(CudaStream& stream, const AttentionWork& work, int num_sms) {
  if (work.format == HeadFormat::kE4M3) return launch_attention_e4m3(stream, work, num_sms);
  hopper_attention::launch_format<HeadFormat::kBf16>(stream, work, num_sms);
}

}  // namespace fovea::cuda
