#pragma once

#include <cstddef>

#include "ops/kernels.h"

namespace fovea {

/// Kernels that compute nothing and count the floating-point operations of a forward pass.
/// Running a forward over them (with Arena::measuring()) also sizes the arena, because workspaces
/// are asked of the real backend. All rows of the capacity count as live. Not thread-safe.
class CostKernels final : public Kernels {
 public:
  /// `backend` answers the workspace questions and must outlive this object.
  explicit CostKernels(const Kernels& backend) noexcept : backend_(backend) {}

  /// Multiply and add of matrix products and attention, two per pair; point-wise work is left out.
  [[nodiscard]] double flops() const noexcept { return flops_; }

  [[nodiscard]] ops::PackedLinear pack_linear(Device& device, ConstTensorView weight,
                                              ConstTensorView bias) const override;
  void linear(Stream& stream, const ops::LinearArgs& args) const override;
  void layer_norm(Stream& stream, const ops::LayerNormArgs& args) const override;
  void rms_norm(Stream& stream, const ops::RmsNormArgs& args) const override;
  void rope_angles(Stream& stream, const ops::RopeAnglesArgs& args) const override;
  void rope(Stream& stream, const ops::RopeArgs& args) const override;
  [[nodiscard]] std::size_t attention_workspace(const ops::AttentionArgs& args) const override;
  void attention(Stream& stream, const ops::AttentionArgs& args) const override;
  void patchify(Stream& stream, const ops::PatchifyArgs& args) const override;
  void add_positions_bilinear(Stream& stream, const ops::AddPositionsArgs& args) const override;
  void gather_rows(Stream& stream, const ops::GatherRowsArgs& args) const override;
  void copy_row_blocks(Stream& stream, const ops::CopyRowBlocksArgs& args) const override;
  void add_table(Stream& stream, const ops::AddTableArgs& args) const override;
  void im2col_3x3(Stream& stream, const ops::Im2colArgs& args) const override;
  [[nodiscard]] std::size_t grid_attention_workspace(
      const ops::GridAttentionArgs& args) const override;
  void grid_attention(Stream& stream, const ops::GridAttentionArgs& args) const override;

 private:
  const Kernels& backend_;
  mutable double flops_ = 0;  // a counter: the interface is const because backends are stateless
};

}  // namespace fovea
