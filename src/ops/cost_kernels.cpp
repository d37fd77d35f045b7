// Counts instead of computing.
#include "ops/cost_kernels.h"

#include "core/check.h"
#include "ops/steps.h"

namespace fovea {

namespace {

void take(Arena& arena, std::size_t bytes) {
  const Arena::Scope scope(arena);
  (void)arena.tensor(DType::kU8, {static_cast<std::int64_t>(bytes)});
}

/// Takes memory for the rest of the caller's scope.
void keep(Arena& arena, std::size_t bytes) {
  if (bytes > 0) (void)arena.tensor(DType::kU8, {static_cast<std::int64_t>(bytes)});
}

double attention_flops(const ops::AttentionArgs& args) {
  return 4.0 * static_cast<double>(args.qkv.shape[0]) *
         static_cast<double>(args.sequences.max_seqlen) * static_cast<double>(args.num_heads) *
         static_cast<double>(args.head_dim);
}

}  // namespace

ops::PackedLinear CostKernels::pack_linear(Device&, ConstTensorView, ConstTensorView,
                                           ops::WeightFormat) const {
  FOVEA_CHECK(false, kInternal, "cost kernels count work, they pack no weights");
}

void CostKernels::count(const ops::LinearArgs& args) const {
  flops_ += 2.0 * static_cast<double>(args.x.shape[0]) *
            static_cast<double>(args.weight.in_features) *
            static_cast<double>(args.weight.out_features);
}

void CostKernels::linear(const Submission& submission, const ops::LinearArgs& args) const {
  take(submission.arena, linear_workspace(args));
  count(args);
}

std::size_t CostKernels::linear_workspace(const ops::LinearArgs& args) const {
  return backend_.linear_workspace(args);
}

void CostKernels::mlp(const Submission& submission, const ops::MlpArgs& args) const {
  const Arena::Scope scope(submission.arena);
  for (const ops::LinearArgs& layer : {ops::first_layer(args), ops::second_layer(args)}) {
    keep(submission.arena, linear_workspace(layer));
    count(layer);
  }
}

void CostKernels::layer_norm(const Submission&, const ops::LayerNormArgs&) const {}

void CostKernels::rms_norm(const Submission&, const ops::RmsNormArgs&) const {}

void CostKernels::quantize_rows(const Submission&, ConstTensorView, LiveRows, TensorView) const {}

void CostKernels::activate(const Submission&, const ops::ActivateArgs&) const {}

void CostKernels::gated(const Submission&, const ops::GatedArgs&) const {}

void CostKernels::clamp(const Submission&, const ops::ClampArgs&) const {}

void CostKernels::rope_angles(const Submission&, const ops::RopeAnglesArgs&) const {}

void CostKernels::attention(const Submission& submission, const ops::AttentionArgs& args) const {
  take(submission.arena, attention_workspace(args));
  flops_ += attention_flops(args);
}

std::size_t CostKernels::attention_workspace(const ops::AttentionArgs& args) const {
  return backend_.attention_workspace(args);
}

bool CostKernels::quantizes_attention(const ops::AttentionArgs& args) const {
  return backend_.quantizes_attention(args);
}

void CostKernels::head_attention(const Submission& submission,
                                 const ops::HeadAttentionArgs& args) const {
  attention(submission, ops::attention_args(args));
}

void CostKernels::prepare_heads(const Submission&, const ops::HeadAttentionArgs&) const {}

void CostKernels::cross_attention(const Submission&, const ops::CrossAttentionArgs& args) const {
  // Keys of a query as if sequences had equally many of both.
  const auto seqs = static_cast<double>(args.cu_queries.shape[0] - 1);
  flops_ += 4.0 * static_cast<double>(args.q.shape[0]) * static_cast<double>(args.kv.shape[0]) /
            seqs * static_cast<double>(args.num_heads) * static_cast<double>(args.head_dim);
}

void CostKernels::projected_attention(const Submission& submission,
                                      const ops::ProjectedAttentionArgs& args) const {
  const Arena::Scope scope(submission.arena);
  const ops::LinearArgs projection = ops::projection_args(args);
  keep(submission.arena, linear_workspace(projection));
  count(projection);
  if (submission.team == nullptr) {
    head_attention(submission, ops::head_attention_args(args));
  } else {  // a member has its part of the heads of all rows
    take(submission.arena, team_attention_workspace(args, submission.team->size).value());
    flops_ += attention_flops(ops::attention_args(ops::head_attention_args(args)));
  }
}

std::optional<std::size_t> CostKernels::team_attention_workspace(
    const ops::ProjectedAttentionArgs& args, int size) const {
  return backend_.team_attention_workspace(args, size);
}

std::optional<std::vector<TensorView>> CostKernels::add_blocks(
    const Submission& submission, const ops::AddBlocksArgs& args) const {
  take(submission.arena, add_blocks_workspace(args));
  return std::nullopt;
}

std::size_t CostKernels::add_blocks_workspace(const ops::AddBlocksArgs& args) const {
  return backend_.add_blocks_workspace(args);
}

void CostKernels::patchify(const Submission&, const ops::PatchifyArgs&) const {}

void CostKernels::add_positions_bilinear(const Submission&, const ops::AddPositionsArgs&) const {}

void CostKernels::add_positions_half_pixel(const Submission&, const ops::AddPositionsArgs&) const {}

void CostKernels::add_positions_bicubic(const Submission&, const ops::AddPositionsArgs&) const {}

void CostKernels::add_positions_antialiased(const Submission&, const ops::AddPositionsArgs&) const {
}

void CostKernels::interpolate_grids(const Submission&, const ops::InterpolateGridsArgs&) const {}

void CostKernels::gather_rows(const Submission&, const ops::GatherRowsArgs&) const {}

void CostKernels::copy_row_blocks(const Submission&, const ops::CopyRowBlocksArgs&) const {}

void CostKernels::add_table(const Submission&, const ops::AddTableArgs&) const {}

void CostKernels::mean_row_blocks(const Submission&, const ops::MeanRowBlocksArgs&) const {}

void CostKernels::im2col_3x3(const Submission&, const ops::Im2colArgs&) const {}

void CostKernels::grid_attention(const Submission& submission,
                                 const ops::GridAttentionArgs& args) const {
  take(submission.arena, grid_attention_workspace(args));
  const std::int64_t keys = args.window > 0 ? args.window * args.window : args.height * args.width;
  flops_ += 4.0 * static_cast<double>(args.qkv.shape[0]) * static_cast<double>(keys) *
            static_cast<double>(args.num_heads) * static_cast<double>(args.head_dim);
}

std::size_t CostKernels::grid_attention_workspace(const ops::GridAttentionArgs& args) const {
  return backend_.grid_attention_workspace(args);
}

}  // namespace fovea
