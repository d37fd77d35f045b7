// The CUDA backend's Kernels: every function forwards to the op's folder.
#include "ops/cuda/cuda_kernels.h"

#include "core/check.h"
#include "ops/cuda/attention/attention.h"
#include "ops/cuda/common/operands.h"
#include "ops/cuda/gemm/gemm.h"
#include "ops/cuda/gemm/linear.h"
#include "ops/cuda/grid_attention/grid_attention.h"
#include "ops/cuda/rowwise/rowwise.h"
#include "ops/cuda/tower/blocks.h"

namespace fovea::cuda {

namespace {

class CudaKernels final : public Kernels {
 public:
  CudaKernels(const CudaDeviceOptions& options, const KernelSets& sets,
              std::shared_ptr<const SmPartition> sms)
      : device_index_(options.index),
        sms_(std::move(sms)),
        num_sms_(sms_->num_sms()),
        has_hopper_kernels_(sets.hopper),
        has_hopper_attention_(sets.hopper && options.attention != CudaAttention::kPortable),
        gemm_(*sms_, options.cache_dir, sets.hopper),
        attention_(options, has_hopper_attention_, num_sms_, gemm_) {
    FOVEA_CHECK(
        options.attention != CudaAttention::kHopper || sets.hopper, kUnsupported,
        "cuda:", options.index,
        ": attention backend hopper needs compute 9.0; this GPU has auto, portable and cudnn");
  }

  [[nodiscard]] ops::PackedLinear pack_linear(Device& device, ConstTensorView weight,
                                              ConstTensorView bias,
                                              ops::WeightFormat format) const override {
    FOVEA_CHECK(format != ops::WeightFormat::kInt8, kUnsupported, "cuda:", device_index_,
                ": int8 weights are for the CPU; a GPU has fp8");
    FOVEA_CHECK(format == ops::WeightFormat::kNative || has_hopper_kernels_, kUnsupported,
                "cuda:", device_index_,
                ": fp8 weights need a GPU with compute capability 9.0 (Hopper) and a plugin built "
                "for it");
    return cuda::pack_linear(device, device_index_, weight, bias, format);
  }
  void linear(const Submission& submission, const ops::LinearArgs& args) const override {
    cuda::linear(submission, args, gemm_, num_sms_);
  }
  [[nodiscard]] std::size_t linear_workspace(const ops::LinearArgs& args) const override {
    return cuda::linear_workspace(args);
  }
  void mlp(const Submission& submission, const ops::MlpArgs& args) const override {
    cuda::mlp(submission, args, gemm_, num_sms_);
  }
  void layer_norm(const Submission& submission, const ops::LayerNormArgs& args) const override {
    cuda::layer_norm(stream_of(submission), args, num_sms_);
  }
  void rms_norm(const Submission& submission, const ops::RmsNormArgs& args) const override {
    cuda::rms_norm(stream_of(submission), args, num_sms_);
  }
  void quantize_rows(const Submission& submission, ConstTensorView x, LiveRows rows,
                     TensorView out) const override {
    cuda::quantize_rows(stream_of(submission), x, rows, ops::parts_of(out), num_sms_);
  }
  void activate(const Submission& submission, const ops::ActivateArgs& args) const override {
    cuda::activate(stream_of(submission), args, num_sms_);
  }
  void gated(const Submission& submission, const ops::GatedArgs& args) const override {
    cuda::gated(stream_of(submission), args, num_sms_);
  }
  void clamp(const Submission& submission, const ops::ClampArgs& args) const override {
    cuda::clamp(stream_of(submission), args, num_sms_);
  }
  void rope_angles(const Submission& submission, const ops::RopeAnglesArgs& args) const override {
    cuda::rope_angles(stream_of(submission), args, num_sms_);
  }
  void attention(const Submission& submission, const ops::AttentionArgs& args) const override {
    attention_.run(submission, args);
  }
  [[nodiscard]] std::size_t attention_workspace(const ops::AttentionArgs& args) const override {
    return attention_.workspace_bytes(args);
  }
  [[nodiscard]] bool quantizes_attention(const ops::AttentionArgs& args) const override {
    return attention_.quantizes(args);
  }
  void head_attention(const Submission& submission,
                      const ops::HeadAttentionArgs& args) const override {
    attention_.run(submission, args);
  }
  void cross_attention(const Submission& submission,
                       const ops::CrossAttentionArgs& args) const override {
    cuda::cross_attention(stream_of(submission), args, num_sms_);
  }
  void prepare_heads(const Submission& submission,
                     const ops::HeadAttentionArgs& args) const override {
    if (args.norms.q) normalize_heads(stream_of(submission), args, num_sms_);
    if (args.cos) rotate(stream_of(submission), args, num_sms_);
  }
  void projected_attention(const Submission& submission,
                           const ops::ProjectedAttentionArgs& args) const override {
    attention_.run(submission, args);
  }
  [[nodiscard]] std::optional<std::size_t> team_attention_workspace(
      const ops::ProjectedAttentionArgs& args, int size) const override {
    return attention_.team_workspace_bytes(args, size);
  }
  [[nodiscard]] ops::PreparedBlocks prepare_blocks(
      Device& device, std::span<const ops::BlockLayers> blocks) const override {
    if (!has_hopper_kernels_) return {};
    return cuda::prepare_blocks(device, *sms_, blocks);
  }
  [[nodiscard]] std::optional<std::vector<TensorView>> add_blocks(
      const Submission& submission, const ops::AddBlocksArgs& args) const override {
    return cuda::add_blocks(submission, args);
  }
  [[nodiscard]] std::size_t add_blocks_workspace(const ops::AddBlocksArgs& args) const override {
    return cuda::add_blocks_workspace(args);
  }
  void patchify(const Submission& submission, const ops::PatchifyArgs& args) const override {
    cuda::patchify(stream_of(submission), args, num_sms_);
  }
  void add_positions_bilinear(const Submission& submission,
                              const ops::AddPositionsArgs& args) const override {
    cuda::add_positions_bilinear(stream_of(submission), args, num_sms_);
  }
  void add_positions_half_pixel(const Submission& submission,
                                const ops::AddPositionsArgs& args) const override {
    cuda::add_positions_half_pixel(stream_of(submission), args, num_sms_);
  }
  void add_positions_bicubic(const Submission& submission,
                             const ops::AddPositionsArgs& args) const override {
    cuda::add_positions_bicubic(stream_of(submission), args, num_sms_);
  }
  void add_positions_antialiased(const Submission& submission,
                                 const ops::AddPositionsArgs& args) const override {
    cuda::add_positions_antialiased(stream_of(submission), args, num_sms_);
  }
  void interpolate_grids(const Submission& submission,
                         const ops::InterpolateGridsArgs& args) const override {
    cuda::interpolate_grids(stream_of(submission), args, num_sms_);
  }
  void gather_rows(const Submission& submission, const ops::GatherRowsArgs& args) const override {
    cuda::gather_rows(stream_of(submission), args, num_sms_);
  }
  void copy_row_blocks(const Submission& submission,
                       const ops::CopyRowBlocksArgs& args) const override {
    cuda::copy_row_blocks(stream_of(submission), args, num_sms_);
  }
  void add_table(const Submission& submission, const ops::AddTableArgs& args) const override {
    cuda::add_table(stream_of(submission), args, num_sms_);
  }
  void mean_row_blocks(const Submission& submission,
                       const ops::MeanRowBlocksArgs& args) const override {
    cuda::mean_row_blocks(stream_of(submission), args, num_sms_);
  }
  void im2col_3x3(const Submission& submission, const ops::Im2colArgs& args) const override {
    cuda::im2col_3x3(stream_of(submission), args, num_sms_);
  }
  void grid_attention(const Submission& submission,
                      const ops::GridAttentionArgs& args) const override {
    cuda::grid_attention(submission, args, has_hopper_attention_, num_sms_);
  }
  [[nodiscard]] std::size_t grid_attention_workspace(
      const ops::GridAttentionArgs& args) const override {
    return cuda::grid_attention_workspace(args, has_hopper_attention_);
  }

 private:
  int device_index_;
  std::shared_ptr<const SmPartition> sms_;
  int num_sms_;
  bool has_hopper_kernels_;
  bool has_hopper_attention_;  // and may use it
  mutable GemmLibrary gemm_;   // remembers which algorithm was fastest
  Attention attention_;
};

}  // namespace

std::shared_ptr<const Kernels> make_cuda_kernels(const CudaDeviceOptions& options,
                                                 const KernelSets& sets,
                                                 std::shared_ptr<const SmPartition> sms) {
  return std::make_shared<const CudaKernels>(options, sets, std::move(sms));
}

}  // namespace fovea::cuda
