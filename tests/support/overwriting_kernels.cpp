#include "support/overwriting_kernels.h"

#include <algorithm>
#include <utility>

#include "device/cpu/cpu_device.h"

namespace fovea::test {
namespace {

constexpr float kGarbage = 12345.0f;  // finite, and seen in any sum

/// Submits garbage for `columns` of rows [live * rows_each, all of out). @param out f32.
void overwrite(const Submission& submission, LiveRows live, std::int64_t rows_each, TensorView out,
               std::int64_t first_column, std::int64_t columns) {
  if (live.count == nullptr || out.dtype != DType::kF32) return;
  static_cast<CpuStream&>(submission.stream).submit([=](ThreadPool&) {
    for (std::int64_t row = *live.count * rows_each; row < out.shape[0]; ++row) {
      std::fill_n(out.as<float>() + row * out.shape[1] + first_column, columns, kGarbage);
    }
  });
}

void overwrite(const Submission& submission, LiveRows live, TensorView out) {
  overwrite(submission, live, 1, out, 0, out.shape[1]);
}

class OverwritingKernels final : public Kernels {
 public:
  explicit OverwritingKernels(std::unique_ptr<Kernels> cpu) : cpu_(std::move(cpu)) {}

  [[nodiscard]] ops::PackedLinear pack_linear(Device& device, ConstTensorView weight,
                                              ConstTensorView bias,
                                              ops::WeightFormat format) const override {
    return cpu_->pack_linear(device, weight, bias, format);
  }
  void linear(const Submission& s, const ops::LinearArgs& args) const override {
    cpu_->linear(s, args);
    overwrite(s, args.rows, 1, args.out, args.out_column, args.weight.out_features);
  }
  [[nodiscard]] std::size_t linear_workspace(const ops::LinearArgs& args) const override {
    return cpu_->linear_workspace(args);
  }
  void mlp(const Submission& s, const ops::MlpArgs& args) const override {
    cpu_->mlp(s, args);
    overwrite(s, args.rows, 1, args.out, args.out_column, args.fc2.out_features);
  }
  void layer_norm(const Submission& s, const ops::LayerNormArgs& args) const override {
    cpu_->layer_norm(s, args);
    overwrite(s, args.rows, args.out);
  }
  void rms_norm(const Submission& s, const ops::RmsNormArgs& args) const override {
    cpu_->rms_norm(s, args);
    overwrite(s, args.rows, args.out);
  }
  void quantize_rows(const Submission& s, ConstTensorView x, LiveRows rows,
                     TensorView out) const override {
    cpu_->quantize_rows(s, x, rows, out);
  }
  void activate(const Submission& s, const ops::ActivateArgs& args) const override {
    cpu_->activate(s, args);
    overwrite(s, args.rows, args.x);
  }
  void gated(const Submission& s, const ops::GatedArgs& args) const override {
    cpu_->gated(s, args);
    overwrite(s, args.rows, args.out);
  }
  void clamp(const Submission& s, const ops::ClampArgs& args) const override {
    cpu_->clamp(s, args);
    overwrite(s, args.rows, args.out);
  }
  void rope_angles(const Submission& s, const ops::RopeAnglesArgs& args) const override {
    cpu_->rope_angles(s, args);
  }
  void attention(const Submission& s, const ops::AttentionArgs& args) const override {
    cpu_->attention(s, args);
    overwrite(s, args.sequences.rows, args.out);
  }
  [[nodiscard]] std::size_t attention_workspace(const ops::AttentionArgs& args) const override {
    return cpu_->attention_workspace(args);
  }
  void cross_attention(const Submission& s, const ops::CrossAttentionArgs& args) const override {
    cpu_->cross_attention(s, args);
  }
  void head_attention(const Submission& s, const ops::HeadAttentionArgs& args) const override {
    cpu_->head_attention(s, args);
    overwrite(s, args.sequences.rows, args.out);
  }
  void prepare_heads(const Submission& s, const ops::HeadAttentionArgs& args) const override {
    cpu_->prepare_heads(s, args);
  }
  void projected_attention(const Submission& s,
                           const ops::ProjectedAttentionArgs& args) const override {
    cpu_->projected_attention(s, args);
    overwrite(s, args.sequences.rows, args.out);
  }
  void patchify(const Submission& s, const ops::PatchifyArgs& args) const override {
    cpu_->patchify(s, args);  // which writes live rows alone on every backend
  }
  void add_positions_bilinear(const Submission& s,
                              const ops::AddPositionsArgs& args) const override {
    cpu_->add_positions_bilinear(s, args);
    overwrite(s, args.rows, args.x);
  }
  void add_positions_half_pixel(const Submission& s,
                                const ops::AddPositionsArgs& args) const override {
    cpu_->add_positions_half_pixel(s, args);
    overwrite(s, args.rows, args.x);
  }
  void add_positions_bicubic(const Submission& s,
                             const ops::AddPositionsArgs& args) const override {
    cpu_->add_positions_bicubic(s, args);
    overwrite(s, args.rows, args.x);
  }
  void add_positions_antialiased(const Submission& s,
                                 const ops::AddPositionsArgs& args) const override {
    cpu_->add_positions_antialiased(s, args);
    overwrite(s, args.rows, args.x);
  }
  void interpolate_grids(const Submission& s,
                         const ops::InterpolateGridsArgs& args) const override {
    cpu_->interpolate_grids(s, args);
  }
  void gather_rows(const Submission& s, const ops::GatherRowsArgs& args) const override {
    cpu_->gather_rows(s, args);
    overwrite(s, args.rows, args.out);
  }
  void copy_row_blocks(const Submission& s, const ops::CopyRowBlocksArgs& args) const override {
    cpu_->copy_row_blocks(s, args);  // between the rows of a block lie those of others
  }
  void add_table(const Submission& s, const ops::AddTableArgs& args) const override {
    cpu_->add_table(s, args);
    overwrite(s, args.rows, args.x);
  }
  void mean_row_blocks(const Submission& s, const ops::MeanRowBlocksArgs& args) const override {
    cpu_->mean_row_blocks(s, args);
    overwrite(s, args.blocks, args.out);
  }
  void im2col_3x3(const Submission& s, const ops::Im2colArgs& args) const override {
    cpu_->im2col_3x3(s, args);
    overwrite(s, args.rows, args.out);
  }
  void grid_attention(const Submission& s, const ops::GridAttentionArgs& args) const override {
    cpu_->grid_attention(s, args);
    overwrite(s, args.images, args.height * args.width, args.out, 0, args.out.shape[1]);
  }
  [[nodiscard]] std::size_t grid_attention_workspace(
      const ops::GridAttentionArgs& args) const override {
    return cpu_->grid_attention_workspace(args);
  }

 private:
  std::unique_ptr<Kernels> cpu_;
};

}  // namespace

std::unique_ptr<Kernels> make_overwriting_kernels(std::unique_ptr<Kernels> cpu) {
  return std::make_unique<OverwritingKernels>(std::move(cpu));
}

}  // namespace fovea::test
