// Chooses between the attention kernels and translates the arguments for them.
#include "ops/cuda/attention/attention.h"

#include <algorithm>
#include <climits>
#include <cmath>

#include "core/check.h"
#include "ops/cuda/attention/work.h"
#include "ops/cuda/common/operands.h"
#include "ops/cuda/gemm/hopper/hopper_gemm.h"
#include "ops/cuda/gemm/linear.h"
#include "ops/cuda/rowwise/rowwise.h"
#include "ops/quantized.h"
#include "ops/steps.h"

namespace fovea::cuda {

namespace {

/// Sizes for which the Hopper kernel is faster: many rows that are not all in short sequences.
/// H100, the tower of Qwen3-VL-30B-A3B (16 heads of 72) as a graph, portable and Hopper kernel: one
/// sequence of 400 rows 1.82 and 1.92 ms, of 484 1.84 and 1.83, of 576 2.63 and 2.16; 16 of 64 rows
/// 2.57 and 2.59, 64 of 64 7.69 and 8.01, 16 of 100 3.71 and 3.68, 4 of 144 2.15 and 2.10, 4 of 196
/// 2.46 and 2.36, 16 of 196 6.45 and 6.54, 8 of 256 4.29 and 4.26, 8 of 400 6.97 and 6.70.
constexpr std::int64_t kHopperFromRows = 576;
constexpr std::int64_t kHopperFromSequence = 128;

AttentionWork make_work(const ops::AttentionArgs& args, const TeamPlaces& team) {
  const int rows = static_cast<int>(args.qkv.shape[0]);
  const int num_heads = static_cast<int>(args.num_heads) / team.size;
  const int head_dim = static_cast<int>(args.head_dim);
  AttentionWork work{{.cu_seqlens = args.sequences.cu_seqlens.as<std::int32_t>(),
                      .live_seqs = args.sequences.seqs.count,
                      .max_seqs = static_cast<int>(args.sequences.cu_seqlens.shape[0] - 1),
                      .rows = rows * team.size,
                      .num_heads = num_heads,
                      .head_dim = head_dim,
                      .query_stride = (team.size == 1 ? 3 : 1) * num_heads * head_dim,
                      .team = team}};
  work.team.rows = rows;
  work.qkv = const_cast<std::byte*>(args.qkv.data);  // kernels write to it only where they rotate
  work.scale = std::abs(args.scale);
  work.out = args.out.data;
  if (args.out.dtype == DType::kF8E4M3) {
    work.out_scale = ops::parts_of(args.out).scale;
    work.out_norm = ops::parts_of(args.out).norm;
  }
  work.prefix_rows = static_cast<int>(std::min<std::int64_t>(args.sequences.prefix_rows, INT_MAX));
  work.max_seqlen = static_cast<int>(std::min<std::int64_t>(args.sequences.max_seqlen, INT_MAX));
  // The kernels find the largest score before scaling, which needs a positive scale.
  if (args.scale < 0.0f) work.flip = kBf16SignBits;
  if (args.scale == 0.0f) {
    work.scale = 1.0f;
    work.keep = 0;
  }
  return work;
}

/// The team of a submission, or one of this GPU alone.
TeamPlaces places_of(const Team* team) {
  TeamPlaces places;
  if (team == nullptr) return places;
  places.size = team->size;
  places.rank = team->rank;
  std::ranges::copy(team->distance, places.distance);
  return places;
}

enum class Kernel { kPortable, kHopper, kCudnn };

Kernel choose(CudaAttention choice, bool hopper, const AttentionWork& work) {
  if (work.prefix_rows < work.max_seqlen) return Kernel::kPortable;  // the others know no mask
  if (choice == CudaAttention::kCudnn && CudnnAttention::accepts(work)) return Kernel::kCudnn;
  if (!hopper || !has_attention_wgmma(work)) return Kernel::kPortable;
  const bool faster = work.rows >= kHopperFromRows && work.max_seqlen >= kHopperFromSequence;
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

struct Attention::Plan {
  Kernel kernel;
  AttentionWork work;
  bool is_packed = false;  ///< keys and values are in the workspace already, for the Hopper kernel
};

Attention::Attention(const CudaDeviceOptions& options, bool hopper, int num_sms, GemmLibrary& gemm)
    : choice_(options.attention), hopper_(hopper), num_sms_(num_sms), gemm_(gemm) {
  if (choice_ == CudaAttention::kCudnn) {
    cudnn_ = std::make_unique<const CudnnAttention>(options.index);
  }
}

Attention::Plan Attention::plan(const char* op, const ops::AttentionArgs& args,
                                const TeamPlaces& team) const {
  check(op, args);
  AttentionWork work = make_work(args, team);
  const Kernel kernel = choose(choice_, hopper_, work);
  // Who packs E4M3 knows no scale that is not positive.
  if (kernel == Kernel::kHopper && args.projection_dtype == DType::kF8E4M3 && args.scale > 0.0f) {
    work.format = HeadFormat::kE4M3;
  }
  return {.kernel = kernel, .work = work};
}

std::size_t Attention::workspace_bytes(const Plan& plan) const {
  switch (plan.kernel) {
    case Kernel::kPortable: return 0;
    case Kernel::kHopper: return packed_bytes(plan.work);
    case Kernel::kCudnn: return cudnn_->workspace_bytes(plan.work);
  }
  return 0;
}

void Attention::run(CudaStream& stream, const Plan& plan) const {
  switch (plan.kernel) {
    case Kernel::kPortable: return launch_attention_mma(stream, plan.work);
    case Kernel::kHopper:
      if (!plan.is_packed) launch_attention_packing(stream, plan.work);
      return launch_attention_wgmma(stream, plan.work, num_sms_);
    case Kernel::kCudnn: return cudnn_->run(stream, plan.work, num_sms_);
  }
}

void Attention::run(const Submission& submission, const ops::AttentionArgs& args) const {
  Plan call = plan("attention", args);
  const Arena::Scope scope(submission.arena);
  call.work.workspace = take_scratch(submission, workspace_bytes(call));
  run(stream_of(submission), call);
}

std::size_t Attention::workspace_bytes(const ops::AttentionArgs& args) const {
  return workspace_bytes(plan("attention", args));
}

bool Attention::quantizes(const ops::AttentionArgs& args) const {
  return plan("attention", args).work.format == HeadFormat::kE4M3;
}

Attention::Plan Attention::plan(const char* op, const ops::HeadAttentionArgs& args,
                                const TeamPlaces& team) const {
  check_vectors(op, "cos", args.cos);
  check_vectors(op, "sin", args.sin);
  check_vectors(op, "norms.q", args.norms.q);
  check_vectors(op, "norms.k", args.norms.k);
  check_vectors(op, "norms.v", args.norms.v);
  Plan call = plan(op, ops::attention_args(args), team);
  // The kernels that pack keys can rotate, too, unless the scale is not positive: then keep and
  // flip of AttentionWork would have to be applied before the rotation.
  if (call.kernel == Kernel::kHopper && args.scale > 0.0f) {
    call.work.cos = args.cos.as<float>();
    call.work.sin = args.sin.as<float>();
  }
  return call;
}

void Attention::run(CudaStream& stream, const ops::HeadAttentionArgs& args,
                    const Plan& plan) const {
  if (args.norms.q) normalize_heads(stream, args, num_sms_);
  if (args.cos && plan.work.cos == nullptr) rotate(stream, args, num_sms_);
  run(stream, plan);
}

void Attention::run(const Submission& submission, const ops::HeadAttentionArgs& args) const {
  Plan call = plan("head_attention", args);
  const Arena::Scope scope(submission.arena);
  call.work.workspace = take_scratch(submission, workspace_bytes(call));
  run(stream_of(submission), args, call);
}

bool Attention::packs(const ops::ProjectedAttentionArgs& args, const Plan& plan, const Gemm& gemm) {
  return plan.kernel == Kernel::kHopper && args.scale > 0.0f && !args.norms.q &&
         HopperGemm::has_heads(plan.work.head_dim, gemm.format) &&
         HopperGemm::accepts(gemm);  // a GEMM of E4M3 packs E4M3
}

std::optional<std::size_t> Attention::team_workspace_bytes(const ops::ProjectedAttentionArgs& args,
                                                           int size) const {
  // A slab is stored by one member.
  if (args.qkv.shape[0] % Slabs<HeadFormat::kE4M3>::kRows != 0) return std::nullopt;
  TeamPlaces team;
  team.size = size;
  const Plan call = plan("projected_attention", ops::head_attention_args(args), team);
  if (!packs(args, call, gemm_of(ops::projection_args(args), false))) return std::nullopt;
  return packed_bytes(call.work);
}

void Attention::run(const Submission& submission, const ops::ProjectedAttentionArgs& args) const {
  const Team* const team = submission.team;
  const ops::HeadAttentionArgs heads = ops::head_attention_args(args);
  Plan call = plan("projected_attention", heads, places_of(team));
  const Arena::Scope scope(submission.arena);
  call.work.workspace = take_scratch(submission, workspace_bytes(call));
  Gemm gemm = prepare_gemm(submission, ops::projection_args(args), num_sms_);
  call.is_packed = packs(args, call, gemm);
  if (call.is_packed) gemm.heads = &call.work;
  CudaStream& stream = stream_of(submission);
  const auto meet = [&] {
    if (team != nullptr) stream.meet(*team);
  };
  meet();  // nobody has other use for the memory that others write to now
  gemm_.run(stream, gemm);
  meet();
  run(stream, heads, call);
  meet();
}

}  // namespace fovea::cuda
