#pragma once

#include <cstddef>
#include <memory>
#include <optional>

#include "device/cuda/cuda_stream.h"
#include "device/cuda_abi.h"
#include "fovea/tower/ops/cross_attention.h"
#include "fovea/tower/ops/projected_attention.h"
#include "ops/cuda/attention/cudnn.h"
#include "ops/cuda/gemm/gemm.h"

namespace fovea::cuda {

/// The attention ops on one GPU, with the kernel that is fastest for the sizes of a call (or the
/// one that the options ask for, where it can do the work). Thread-safe.
class Attention {
 public:
  /// @param hopper whether the Hopper kernel may be used where it can.
  /// @param gemm computes projections; must outlive this object.
  /// @throws Error(kUnsupported) if the options ask for cuDNN and there is none.
  Attention(const CudaDeviceOptions& options, bool hopper, int num_sms, GemmLibrary& gemm);

  /// Bodies of Kernels::attention, Kernels::head_attention and Kernels::projected_attention.
  void run(const Submission& submission, const ops::AttentionArgs& args) const;
  void run(const Submission& submission, const ops::HeadAttentionArgs& args) const;
  void run(const Submission& submission, const ops::ProjectedAttentionArgs& args) const;
  /// The body of Kernels::attention_workspace.
  [[nodiscard]] std::size_t workspace_bytes(const ops::AttentionArgs& args) const;
  /// The body of Kernels::quantizes_attention: where the Hopper kernel multiplies E4M3.
  [[nodiscard]] bool quantizes(const ops::AttentionArgs& args) const;
  /// The body of Kernels::team_attention_workspace: there is a way where the Hopper kernels both
  /// pack and attend. Members then store heads in the memory of each other as their GEMMs end, and
  /// results as their attention does.
  [[nodiscard]] std::optional<std::size_t> team_workspace_bytes(
      const ops::ProjectedAttentionArgs& args, int size) const;

 private:
  struct Plan;  // the kernel that was chosen for a call, and its arguments
  [[nodiscard]] Plan plan(const char* op, const ops::AttentionArgs& args,
                          const TeamPlaces& team = {}) const;
  [[nodiscard]] std::size_t workspace_bytes(const Plan& plan) const;
  void run(CudaStream& stream, const Plan& plan) const;
  /// The checks of a call and the kernel for it, which rotates where it can.
  [[nodiscard]] Plan plan(const char* op, const ops::HeadAttentionArgs& args,
                          const TeamPlaces& team = {}) const;
  /// Whether the GEMM of a call packs heads for the kernel that was chosen.
  [[nodiscard]] static bool packs(const ops::ProjectedAttentionArgs& args, const Plan& plan,
                                  const Gemm& gemm);
  /// Everything behind the projection.
  void run(CudaStream& stream, const ops::HeadAttentionArgs& args, const Plan& plan) const;

  CudaAttention choice_;
  bool hopper_;
  int num_sms_;
  GemmLibrary& gemm_;
  std::unique_ptr<const CudnnAttention> cudnn_;  // where it was asked for
};

/// The body of Kernels::cross_attention; returns at once.
/// @throws Error(kUnsupported) for other activations than bf16 and heads of more than 128 dims.
void cross_attention(CudaStream& stream, const ops::CrossAttentionArgs& args, int num_sms);

}  // namespace fovea::cuda
