// Counts instead of computing.
#include "ops/cost_kernels.h"

#include "core/check.h"

namespace fovea {

ops::PackedLinear CostKernels::pack_linear(Device&, ConstTensorView, ConstTensorView) const {
  FOVEA_CHECK(false, kInternal, "cost kernels count work, they pack no weights");
}

void CostKernels::linear(Stream&, const ops::LinearArgs& args) const {
  ++num_ops_;
  flops_ += 2.0 * static_cast<double>(args.x.shape[0]) *
            static_cast<double>(args.weight.in_features) *
            static_cast<double>(args.weight.out_features);
  weight_bytes_ += static_cast<double>(args.weight.bytes());
}

void CostKernels::layer_norm(Stream&, const ops::LayerNormArgs&) const { ++num_ops_; }

void CostKernels::rms_norm(Stream&, const ops::RmsNormArgs&) const { ++num_ops_; }

void CostKernels::rope_angles(Stream&, const ops::RopeAnglesArgs&) const { ++num_ops_; }

void CostKernels::rope(Stream&, const ops::RopeArgs&) const { ++num_ops_; }

std::size_t CostKernels::attention_workspace(const ops::AttentionArgs& args) const {
  return backend_.attention_workspace(args);
}

void CostKernels::attention(Stream& stream, const ops::AttentionArgs& args) const {
  if (args.x) linear(stream, ops::projection_args(args));
  ++num_ops_;
  flops_ += 4.0 * static_cast<double>(args.qkv.shape[0]) * static_cast<double>(args.max_seqlen) *
            static_cast<double>(args.num_heads) * static_cast<double>(args.head_dim);
}

void CostKernels::patchify(Stream&, const ops::PatchifyArgs&) const { ++num_ops_; }

void CostKernels::add_positions_bilinear(Stream&, const ops::AddPositionsArgs&) const {
  ++num_ops_;
}

void CostKernels::gather_rows(Stream&, const ops::GatherRowsArgs&) const { ++num_ops_; }

void CostKernels::copy_row_blocks(Stream&, const ops::CopyRowBlocksArgs&) const { ++num_ops_; }

void CostKernels::add_table(Stream&, const ops::AddTableArgs&) const { ++num_ops_; }

void CostKernels::im2col_3x3(Stream&, const ops::Im2colArgs&) const { ++num_ops_; }

std::size_t CostKernels::grid_attention_workspace(const ops::GridAttentionArgs& args) const {
  return backend_.grid_attention_workspace(args);
}

void CostKernels::grid_attention(Stream&, const ops::GridAttentionArgs& args) const {
  ++num_ops_;
  const std::int64_t keys = args.window > 0 ? args.window * args.window : args.height * args.width;
  flops_ += 4.0 * static_cast<double>(args.qkv.shape[0]) * static_cast<double>(keys) *
            static_cast<double>(args.num_heads) * static_cast<double>(args.head_dim);
}

}  // namespace fovea
