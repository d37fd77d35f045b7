// Counts instead of computing.
#include "ops/cost_kernels.h"

#include "core/check.h"

namespace fovea {

ops::PackedLinear CostKernels::pack_linear(Device&, ConstTensorView, ConstTensorView) const {
  FOVEA_CHECK(false, kInternal, "cost kernels count work, they pack no weights");
}

void CostKernels::linear(Stream&, const ops::LinearArgs& args) const {
  flops_ += 2.0 * static_cast<double>(args.x.shape[0]) *
            static_cast<double>(args.weight.in_features) *
            static_cast<double>(args.weight.out_features);
}

void CostKernels::layer_norm(Stream&, const ops::LayerNormArgs&) const {}

void CostKernels::rms_norm(Stream&, const ops::RmsNormArgs&) const {}

void CostKernels::rope_angles(Stream&, const ops::RopeAnglesArgs&) const {}

void CostKernels::rope(Stream&, const ops::RopeArgs&) const {}

std::size_t CostKernels::attention_workspace(const ops::AttentionArgs& args) const {
  return backend_.attention_workspace(args);
}

void CostKernels::attention(Stream& stream, const ops::AttentionArgs& args) const {
  if (args.x) linear(stream, ops::projection_args(args));
  flops_ += 4.0 * static_cast<double>(args.qkv.shape[0]) * static_cast<double>(args.max_seqlen) *
            static_cast<double>(args.num_heads) * static_cast<double>(args.head_dim);
}

void CostKernels::patchify(Stream&, const ops::PatchifyArgs&) const {}

void CostKernels::add_positions_bilinear(Stream&, const ops::AddPositionsArgs&) const {}

void CostKernels::gather_rows(Stream&, const ops::GatherRowsArgs&) const {}

void CostKernels::copy_row_blocks(Stream&, const ops::CopyRowBlocksArgs&) const {}

void CostKernels::add_table(Stream&, const ops::AddTableArgs&) const {}

void CostKernels::im2col_3x3(Stream&, const ops::Im2colArgs&) const {}

std::size_t CostKernels::grid_attention_workspace(const ops::GridAttentionArgs& args) const {
  return backend_.grid_attention_workspace(args);
}

void CostKernels::grid_attention(Stream&, const ops::GridAttentionArgs& args) const {
  const std::int64_t keys = args.window > 0 ? args.window * args.window : args.height * args.width;
  flops_ += 4.0 * static_cast<double>(args.qkv.shape[0]) * static_cast<double>(keys) *
            static_cast<double>(args.num_heads) * static_cast<double>(args.head_dim);
}

}  // namespace fovea
