// Chooses between the attention kernels and brings the arguments into the form they take.
#include <cmath>

#include "core/check.h"
#include "ops/cuda/attention/packing.h"
#include "ops/cuda/common/alignment.h"
#include "ops/cuda/common/operand_check.h"
#include "ops/cuda/cuda_kernels.h"
#include "ops/cuda/gemm/hopper/hopper_gemm.h"

namespace fovea::cuda {

namespace {

/// Sizes for which the Hopper kernel is faster: many rows that are not all in short sequences.
/// H100, the tower of Qwen3-VL-30B-A3B (16 heads of 72) as a graph, portable and Hopper kernel: one
/// sequence of 400 rows 1.82 and 1.92 ms, of 484 1.84 and 1.83, of 576 2.63 and 2.16; 16 of 64 rows
/// 2.57 and 2.59, 64 of 64 7.69 and 8.01, 16 of 100 3.71 and 3.68, 4 of 144 2.15 and 2.10, 4 of 196
/// 2.46 and 2.36, 16 of 196 6.45 and 6.54, 8 of 256 4.29 and 4.26, 8 of 400 6.97 and 6.70.
constexpr std::int64_t kHopperFromRows = 576;
constexpr std::int64_t kHopperFromSequence = 128;

AttentionWork make_work(const ops::AttentionArgs& args) {
  AttentionWork work{.qkv = args.qkv.data,
                     .cu_seqlens = args.cu_seqlens.as<std::int32_t>(),
                     .live_seqs = args.seqs.count,
                     .max_seqs = static_cast<int>(args.cu_seqlens.shape[0] - 1),
                     .rows = static_cast<int>(args.qkv.shape[0]),
                     .num_heads = static_cast<int>(args.num_heads),
                     .head_dim = static_cast<int>(args.head_dim),
                     .scale = std::abs(args.scale),
                     .out = args.out.data,
                     .workspace = args.workspace.data};
  // The kernels find the largest score before scaling, which needs a positive scale.
  if (args.scale < 0.0f) work.flip = kBf16SignBits;
  if (args.scale == 0.0f) {
    work.scale = 1.0f;
    work.keep = 0;
  }
  return work;
}

enum class Kernel { kPortable, kHopper, kCudnn };

/// Which one serves these sizes; the same for the workspace and for the work itself.
Kernel choose(CudaAttention choice, const ops::AttentionArgs& args, const AttentionWork& work) {
  if (choice == CudaAttention::kCudnn && CudnnAttention::accepts(work)) return Kernel::kCudnn;
  if (choice == CudaAttention::kPortable || !has_attention_wgmma(work)) return Kernel::kPortable;
  const bool faster = work.rows >= kHopperFromRows && args.max_seqlen >= kHopperFromSequence;
  return faster || choice == CudaAttention::kHopper ? Kernel::kHopper : Kernel::kPortable;
}

/// Whether the kernel that packs keys can apply the rotary angles: four dims at a time, and without
/// the bits that make up for a scale that is not positive.
bool rotates_while_packing(const ops::AttentionArgs& args) {
  return args.scale > 0.0f && is_aligned(args.qkv.data, 16) && is_aligned(args.cos.data, 16) &&
         is_aligned(args.sin.data, 16);
}

/// Whether the product before attention can pack, and rotate, what it computes.
bool packs_while_projecting(const ops::AttentionArgs& args) {
  return rotates_while_packing(args) && HopperGemm::has_heads(static_cast<int>(args.head_dim)) &&
         HopperGemm::accepts(gemm_of(ops::projection_args(args)));
}

void check(const ops::AttentionArgs& args) {
  check_bf16("attention", "qkv", args.qkv);
  check_vectors("attention", "qkv", args.qkv);
  check_vectors("attention", "out", args.out);
  FOVEA_CHECK(args.head_dim <= kMaxAttentionHeadDim, kUnsupported,
              "attention: head_dim must be at most ", kMaxAttentionHeadDim, " on a GPU, got ",
              args.head_dim);
  FOVEA_CHECK(args.qkv.shape[0] <= INT32_MAX && args.cu_seqlens.shape[0] <= INT32_MAX, kUnsupported,
              "attention: ", args.qkv.shape[0], " rows are too many for a GPU");
}

}  // namespace

std::size_t CudaKernels::attention_workspace(const ops::AttentionArgs& args) const {
  check(args);
  const AttentionWork work = make_work(args);
  switch (choose(attention_, args, work)) {
    case Kernel::kPortable: return 0;
    case Kernel::kHopper: return packed_bytes(work);
    case Kernel::kCudnn: return cudnn_->workspace_bytes(work, args.max_seqlen);
  }
  return 0;
}

void CudaKernels::attention(Stream& stream, const ops::AttentionArgs& args) const {
  check(args);
  auto& cuda_stream = static_cast<CudaStream&>(stream);
  AttentionWork work = make_work(args);
  const Kernel kernel = choose(attention_, args, work);
  if (kernel == Kernel::kHopper && rotates_while_packing(args)) {
    work.cos = args.cos.as<float>();
    work.sin = args.sin.as<float>();
  }
  const bool is_packed = args.x && kernel == Kernel::kHopper && packs_while_projecting(args);
  if (args.x) {
    Gemm product = gemm_of(ops::projection_args(args));
    if (is_packed) product.attention = &work;
    gemm_.run(cuda_stream, product);
  }
  if (args.cos && work.cos == nullptr) rope(stream, ops::rope_args(args));
  switch (kernel) {
    case Kernel::kPortable: return launch_attention_mma(cuda_stream, work);
    case Kernel::kHopper:
      if (!is_packed) launch_attention_packing(cuda_stream, work);
      return launch_attention_wgmma(cuda_stream, work, num_multiprocessors_);
    case Kernel::kCudnn:
      return cudnn_->run(cuda_stream, work, args.max_seqlen, num_multiprocessors_);
  }
}

}  // namespace fovea::cuda
