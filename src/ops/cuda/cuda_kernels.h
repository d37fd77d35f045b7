#pragma once

#include <memory>

#include "device/cuda_abi.h"
#include "ops/cuda/attention/cudnn.h"
#include "ops/cuda/gemm/gemm.h"
#include "ops/kernels.h"

namespace fovea::cuda {

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
  int device_index_;
  int num_multiprocessors_;
  CudaAttention attention_;
  std::unique_ptr<const CudnnAttention> cudnn_;  // where it was chosen
  mutable GemmLibrary gemm_;                     // remembers which algorithm was fastest
};

}  // namespace fovea::cuda
