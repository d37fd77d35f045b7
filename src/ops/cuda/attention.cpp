// Chooses between the attention kernels.
#include "core/check.h"
#include "ops/cuda/attention_work.h"
#include "ops/cuda/cuda_kernels.h"

namespace fovea::cuda {

std::size_t CudaKernels::attention_workspace(const ops::AttentionArgs&) const { return 0; }

void CudaKernels::attention(Stream& stream, const ops::AttentionArgs& args) const {
  FOVEA_CHECK(args.head_dim <= kMaxAttentionHeadDim, kUnsupported,
              "attention: head_dim must be at most ", kMaxAttentionHeadDim, " on a GPU, got ",
              args.head_dim);
  FOVEA_CHECK(args.qkv.shape[0] <= INT32_MAX, kUnsupported, "attention: ", args.qkv.shape[0],
              " rows are too many for a GPU");
  auto& cuda_stream = static_cast<CudaStream&>(stream);
  launch_attention_mma(cuda_stream, {.qkv = args.qkv.data,
                                     .cu_seqlens = args.cu_seqlens.as<std::int32_t>(),
                                     .live_seqs = args.seqs.count,
                                     .max_seqs = static_cast<int>(args.cu_seqlens.shape[0] - 1),
                                     .rows = static_cast<int>(args.qkv.shape[0]),
                                     .num_heads = static_cast<int>(args.num_heads),
                                     .head_dim = static_cast<int>(args.head_dim),
                                     .scale = args.scale,
                                     .out = args.out.data});
}

}  // namespace fovea::cuda
