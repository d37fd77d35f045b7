// Chooses between the attention kernels and brings the arguments into the form they take.
#include <cmath>

#include "core/check.h"
#include "ops/cuda/alignment.h"
#include "ops/cuda/attention_packing.h"
#include "ops/cuda/cuda_kernels.h"
#include "ops/cuda/gemm_hopper.h"

namespace fovea::cuda {

namespace {

/// Sequences for which the Hopper kernel is faster: long ones, and many of some length. H100, 16
/// heads of 72, portable and Hopper kernel, the latter without rotation: one sequence of 64
/// rows 3.7 and 9.6 us, 256 rows 6.1 and 11.8, 512 rows 10.3 and 15.0, 640 rows 20.8 and 17.7, 1024
/// rows 31.2 and 29.5; 2 of 512 rows 19.1 and 24.9, 4 of 384 rows 22.1 and 27.5; 40 of 196 rows 68
/// and 89, 20 of 440 rows 105 and 104, where a rotation of its own would cost the portable one
/// another 34.
constexpr std::int64_t kHopperFromSequence = 576;
constexpr std::int64_t kHopperFromSequenceOfMany = 320;
constexpr std::int64_t kManyRows = 2048;

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
  const std::int64_t from =
      work.rows >= kManyRows ? kHopperFromSequenceOfMany : kHopperFromSequence;
  const bool faster = choice == CudaAttention::kHopper || args.max_seqlen >= from;
  return faster ? Kernel::kHopper : Kernel::kPortable;
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
