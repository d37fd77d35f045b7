#pragma once

#include <memory>

#include "device/cuda_abi.h"
#include "ops/cuda/attention/cudnn.h"
#include "ops/cuda/gemm/gemm.h"
#include "ops/kernels.h"

namespace fovea::cuda {

[[nodiscard]] inline CudaStream& stream_of(const Submission& submission) {
  return static_cast<CudaStream&>(submission.stream);
}

/// Memory until the caller's scope of the arena ends.
[[nodiscard]] inline std::byte* take_scratch(const Submission& submission, std::size_t bytes) {
  return submission.arena.tensor(DType::kU8, {static_cast<std::int64_t>(bytes)}).data;
}

/// The ops on one Hopper GPU: bf16 activations and weights, f32 accumulation and statistics. Norm
/// parameters, tables and angles arrive in f32. Every body reads the live counts on the device and
/// stops there, but for products by cuBLASLt, which compute all rows, and patchify and attention,
/// which write zeros to the others. Tensors have to be bf16 (check_operand), otherwise
/// Error(kUnsupported). Thread-safe.
class CudaKernels final : public Kernels {
 public:
  explicit CudaKernels(const CudaDeviceOptions& options);

  [[nodiscard]] ops::PackedLinear pack_linear(Device& device, ConstTensorView weight,
                                              ConstTensorView bias) const override;
  void linear(const Submission& submission, const ops::LinearArgs& args) const override;
  void layer_norm(const Submission& submission, const ops::LayerNormArgs& args) const override;
  void rms_norm(const Submission& submission, const ops::RmsNormArgs& args) const override;
  void rope_angles(const Submission& submission, const ops::RopeAnglesArgs& args) const override;
  void attention(const Submission& submission, const ops::AttentionArgs& args) const override;
  [[nodiscard]] std::size_t attention_workspace(const ops::AttentionArgs& args) const override;
  void projected_attention(const Submission& submission,
                           const ops::ProjectedAttentionArgs& args) const override;
  void patchify(const Submission& submission, const ops::PatchifyArgs& args) const override;
  void add_positions_bilinear(const Submission& submission,
                              const ops::AddPositionsArgs& args) const override;
  void gather_rows(const Submission& submission, const ops::GatherRowsArgs& args) const override;
  void copy_row_blocks(const Submission& submission,
                       const ops::CopyRowBlocksArgs& args) const override;
  void add_table(const Submission& submission, const ops::AddTableArgs& args) const override;
  void im2col_3x3(const Submission& submission, const ops::Im2colArgs& args) const override;
  void grid_attention(const Submission& submission,
                      const ops::GridAttentionArgs& args) const override;
  [[nodiscard]] std::size_t grid_attention_workspace(
      const ops::GridAttentionArgs& args) const override;

 private:
  /// The kernel that was chosen for an attention op, and its arguments (attention/attention.cpp).
  struct AttentionPlan;
  [[nodiscard]] AttentionPlan plan_attention(const char* op, const ops::AttentionArgs& args) const;
  [[nodiscard]] std::size_t workspace_bytes(const AttentionPlan& plan) const;
  void run(CudaStream& stream, const AttentionPlan& plan) const;
  /// Rotates q and k of args.qkv in place.
  void rotate(CudaStream& stream, const ops::ProjectedAttentionArgs& args) const;

  int device_index_;
  int num_multiprocessors_;
  CudaAttention attention_;
  std::unique_ptr<const CudnnAttention> cudnn_;  // where it was chosen
  mutable GemmLibrary gemm_;                     // remembers which algorithm was fastest
};

}  // namespace fovea::cuda
