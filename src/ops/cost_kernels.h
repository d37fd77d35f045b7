#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "ops/kernels.h"

namespace fovea {

/// Kernels that compute nothing and count the floating-point operations of a forward pass.
/// Running a forward over them (with Arena::measuring()) also sizes the arena, because they take
/// from it what the real backend says it takes. All rows of the capacity count as live. Not
/// thread-safe.
class CostKernels final : public Kernels {
 public:
  /// `backend` answers the workspace questions and must outlive this object.
  explicit CostKernels(const Kernels& backend) noexcept : backend_(backend) {}

  /// Multiply and add of GEMMs and attention, two per pair; point-wise work is left out.
  [[nodiscard]] double flops() const noexcept { return flops_; }

  [[nodiscard]] ops::PackedLinear pack_linear(Device& device, ConstTensorView weight,
                                              ConstTensorView bias,
                                              ops::WeightFormat format) const override;
  void linear(const Submission& submission, const ops::LinearArgs& args) const override;
  [[nodiscard]] std::size_t linear_workspace(const ops::LinearArgs& args) const override;
  void mlp(const Submission& submission, const ops::MlpArgs& args) const override;
  void layer_norm(const Submission& submission, const ops::LayerNormArgs& args) const override;
  void rms_norm(const Submission& submission, const ops::RmsNormArgs& args) const override;
  void activate(const Submission& submission, const ops::ActivateArgs& args) const override;
  void quantize_rows(const Submission& submission, ConstTensorView x, LiveRows rows,
                     TensorView out) const override;
  void gated(const Submission& submission, const ops::GatedArgs& args) const override;
  void clamp(const Submission& submission, const ops::ClampArgs& args) const override;
  void rope_angles(const Submission& submission, const ops::RopeAnglesArgs& args) const override;
  void attention(const Submission& submission, const ops::AttentionArgs& args) const override;
  [[nodiscard]] std::size_t attention_workspace(const ops::AttentionArgs& args) const override;
  void head_attention(const Submission& submission,
                      const ops::HeadAttentionArgs& args) const override;
  void cross_attention(const Submission& submission,
                       const ops::CrossAttentionArgs& args) const override;
  void prepare_heads(const Submission& submission,
                     const ops::HeadAttentionArgs& args) const override;
  [[nodiscard]] bool quantizes_attention(const ops::AttentionArgs& args) const override;
  void projected_attention(const Submission& submission,
                           const ops::ProjectedAttentionArgs& args) const override;
  [[nodiscard]] std::optional<std::size_t> team_attention_workspace(
      const ops::ProjectedAttentionArgs& args, int size) const override;
  /// Nothing, so that the ops of the blocks are counted one by one.
  [[nodiscard]] std::optional<std::vector<TensorView>> add_blocks(
      const Submission& submission, const ops::AddBlocksArgs& args) const override;
  [[nodiscard]] std::size_t add_blocks_workspace(const ops::AddBlocksArgs& args) const override;
  void patchify(const Submission& submission, const ops::PatchifyArgs& args) const override;
  void add_positions_bilinear(const Submission& submission,
                              const ops::AddPositionsArgs& args) const override;
  void add_positions_half_pixel(const Submission& submission,
                                const ops::AddPositionsArgs& args) const override;
  void add_positions_bicubic(const Submission& submission,
                             const ops::AddPositionsArgs& args) const override;
  void add_positions_antialiased(const Submission& submission,
                                 const ops::AddPositionsArgs& args) const override;
  void interpolate_grids(const Submission& submission,
                         const ops::InterpolateGridsArgs& args) const override;
  void gather_rows(const Submission& submission, const ops::GatherRowsArgs& args) const override;
  void copy_row_blocks(const Submission& submission,
                       const ops::CopyRowBlocksArgs& args) const override;
  void add_table(const Submission& submission, const ops::AddTableArgs& args) const override;
  void mean_row_blocks(const Submission& submission,
                       const ops::MeanRowBlocksArgs& args) const override;
  void im2col_3x3(const Submission& submission, const ops::Im2colArgs& args) const override;
  void grid_attention(const Submission& submission,
                      const ops::GridAttentionArgs& args) const override;
  [[nodiscard]] std::size_t grid_attention_workspace(
      const ops::GridAttentionArgs& args) const override;

 private:
  void count(const ops::LinearArgs& args) const;

  const Kernels& backend_;
  mutable double flops_ = 0;  // counters: the interface is const because backends are stateless
};

}  // namespace fovea
