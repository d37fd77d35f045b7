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
  AttentionWork work{
      .qkv = const_cast<std::byte*>(args.qkv.data),  // written by those who rotate alone
      .cu_seqlens = args.sequences.cu_seqlens.as<std::int32_t>(),
      .live_seqs = args.sequences.seqs.count,
      .max_seqs = static_cast<int>(args.sequences.cu_seqlens.shape[0] - 1),
      .rows = static_cast<int>(args.qkv.shape[0]),
      .num_heads = static_cast<int>(args.num_heads),
      .head_dim = static_cast<int>(args.head_dim),
      .scale = std::abs(args.scale),
      .out = args.out.data,
      .workspace = nullptr};
  // The kernels find the largest score before scaling, which needs a positive scale.
  if (args.scale < 0.0f) work.flip = kBf16SignBits;
  if (args.scale == 0.0f) {
    work.scale = 1.0f;
    work.keep = 0;
  }
  return work;
}

enum class Kernel { kPortable, kHopper, kCudnn };

Kernel choose(CudaAttention choice, const AttentionWork& work, std::int64_t max_seqlen) {
  if (choice == CudaAttention::kCudnn && CudnnAttention::accepts(work)) return Kernel::kCudnn;
  if (choice == CudaAttention::kPortable || !has_attention_wgmma(work)) return Kernel::kPortable;
  const bool faster = work.rows >= kHopperFromRows && max_seqlen >= kHopperFromSequence;
  return faster || choice == CudaAttention::kHopper ? Kernel::kHopper : Kernel::kPortable;
}

void check(const char* op, const ops::AttentionArgs& args) {
  check_bf16(op, "qkv", args.qkv);
  check_vectors(op, "qkv", args.qkv);
  check_vectors(op, "out", args.out);
  FOVEA_CHECK(args.head_dim <= kMaxAttentionHeadDim, kUnsupported, op,
              ": head_dim must be at most ", kMaxAttentionHeadDim, " on a GPU, got ",
              args.head_dim);
  FOVEA_CHECK(args.qkv.shape[0] <= INT32_MAX && args.sequences.cu_seqlens.shape[0] <= INT32_MAX,
              kUnsupported, op, ": ", args.qkv.shape[0], " rows are too many for a GPU");
}

}  // namespace

struct CudaKernels::AttentionPlan {
  Kernel kernel;
  AttentionWork work;
  std::int64_t max_seqlen;
  bool is_packed = false;  ///< keys and values are in the workspace already, for the Hopper kernel
};

CudaKernels::AttentionPlan CudaKernels::plan_attention(const char* op,
                                                       const ops::AttentionArgs& args) const {
  check(op, args);
  const AttentionWork work = make_work(args);
  const std::int64_t max_seqlen = args.sequences.max_seqlen;
  return {.kernel = choose(attention_, work, max_seqlen), .work = work, .max_seqlen = max_seqlen};
}

std::size_t CudaKernels::workspace_bytes(const AttentionPlan& plan) const {
  switch (plan.kernel) {
    case Kernel::kPortable: return 0;
    case Kernel::kHopper: return packed_bytes(plan.work);
    case Kernel::kCudnn: return cudnn_->workspace_bytes(plan.work, plan.max_seqlen);
  }
  return 0;
}

void CudaKernels::run(CudaStream& stream, const AttentionPlan& plan) const {
  switch (plan.kernel) {
    case Kernel::kPortable: return launch_attention_mma(stream, plan.work);
    case Kernel::kHopper:
      if (!plan.is_packed) launch_attention_packing(stream, plan.work);
      return launch_attention_wgmma(stream, plan.work, num_multiprocessors_);
    case Kernel::kCudnn:
      return cudnn_->run(stream, plan.work, plan.max_seqlen, num_multiprocessors_);
  }
}

void CudaKernels::attention(const Submission& submission, const ops::AttentionArgs& args) const {
  AttentionPlan plan = plan_attention("attention", args);
  const Arena::Scope scope(submission.arena);
  plan.work.workspace = take_scratch(submission, workspace_bytes(plan));
  run(stream_of(submission), plan);
}

std::size_t CudaKernels::attention_workspace(const ops::AttentionArgs& args) const {
  return workspace_bytes(plan_attention("attention", args));
}

void CudaKernels::projected_attention(const Submission& submission,
                                      const ops::ProjectedAttentionArgs& args) const {
  AttentionPlan plan = plan_attention("projected_attention", ops::attention_args(args));
  check_vectors("projected_attention", "cos", args.cos);
  check_vectors("projected_attention", "sin", args.sin);
  const Arena::Scope scope(submission.arena);
  plan.work.workspace = take_scratch(submission, workspace_bytes(plan));
  Gemm gemm = gemm_of(ops::projection_args(args), submission.is_recorded);
  // What packs keys can rotate as well, but not without the bits that make up for a scale that is
  // not positive.
  if (plan.kernel == Kernel::kHopper && args.scale > 0.0f) {
    plan.work.cos = args.cos.as<float>();
    plan.work.sin = args.sin.as<float>();
    plan.is_packed = HopperGemm::has_heads(plan.work.head_dim) && HopperGemm::accepts(gemm);
    if (plan.is_packed) gemm.attention = &plan.work;
  }
  gemm_.run(stream_of(submission), gemm);
  if (args.cos && plan.work.cos == nullptr) rotate(stream_of(submission), args);
  run(stream_of(submission), plan);
}

}  // namespace fovea::cuda
