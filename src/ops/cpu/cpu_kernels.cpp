// The CPU backend's Kernels: every function forwards to the op's file.
#include "ops/cpu/cpu_kernels.h"

#include <algorithm>
#include <span>

#include "core/check.h"
#include "core/thread_pool.h"
#include "ops/cpu/attention/attention.h"
#include "ops/cpu/gemm/gemm.h"
#include "ops/cpu/isa/isa_kernels.h"
#include "ops/cpu/rowwise/rowwise.h"
#include "ops/steps.h"

namespace fovea {

namespace {

/// The op functions accept every float dtype; this backend computes in f32 only.
void check_f32(const char* op, const ConstTensorView& activation) {
  FOVEA_CHECK(activation.dtype == DType::kF32, kUnsupported, op,
              ": the CPU backend has float32 activations, got ", to_string(activation.dtype));
}

/// Memory until the caller's scope of the arena ends.
TensorView scratch(const Submission& submission, std::size_t bytes) {
  return submission.arena.tensor(DType::kU8, {static_cast<std::int64_t>(bytes)});
}

class CpuKernels final : public Kernels {
 public:
  CpuKernels(CpuIsa isa, int num_threads, DType compute) noexcept
      : kernels_(cpu::choose_kernels(cpu::features_up_to(isa))),
        num_threads_(num_threads),
        compute_(compute) {}

  [[nodiscard]] ops::PackedLinear pack_linear(Device& device, ConstTensorView weight,
                                              ConstTensorView bias,
                                              ops::WeightFormat format) const override {
    FOVEA_CHECK(format != ops::WeightFormat::kFp8, kUnsupported,
                "fp8 weights need a GPU with compute capability 9.0 (Hopper), not the CPU");
    const bool is_int8 =
        format == ops::WeightFormat::kInt8 && weight.shape[1] <= cpu::kMaxInt8Features;
    return cpu::pack_linear(device, weight, bias, gemm_kernel(is_int8).format);
  }
  void linear(const Submission& submission, const ops::LinearArgs& args) const override {
    check_f32("linear", args.x);
    const Arena::Scope scope(submission.arena);
    cpu::linear(submission.stream, args, scratch(submission, linear_workspace(args)),
                gemm_kernel(args.weight.dtype == DType::kI8));
  }
  [[nodiscard]] std::size_t linear_workspace(const ops::LinearArgs& args) const override {
    return cpu::linear_workspace(args, gemm_kernel(args.weight.dtype == DType::kI8).format);
  }
  void mlp(const Submission& submission, const ops::MlpArgs& args) const override {
    linear(submission, ops::first_layer(args));
    linear(submission, ops::second_layer(args));
  }
  void layer_norm(const Submission& submission, const ops::LayerNormArgs& args) const override {
    check_f32("layer_norm", args.x);
    cpu::layer_norm(submission.stream, args, kernels_.rows.layer_norm);
  }
  void rms_norm(const Submission& submission, const ops::RmsNormArgs& args) const override {
    check_f32("rms_norm", args.x);
    cpu::rms_norm(submission.stream, args, kernels_.rows.rms_norm);
  }
  void quantize_rows(const Submission&, ConstTensorView, LiveRows, TensorView) const override {
    FOVEA_CHECK(false, kUnsupported, "a CPU has no weights of E4M3 that would read quantized rows");
  }
  void activate(const Submission& submission, const ops::ActivateArgs& args) const override {
    check_f32("activate", args.x);
    cpu::activate(submission.stream, args, kernels_.rows.activate);
  }
  void gated(const Submission& submission, const ops::GatedArgs& args) const override {
    check_f32("gated", args.x);
    cpu::gated(submission.stream, args, kernels_.rows.gate);
  }
  void clamp(const Submission& submission, const ops::ClampArgs& args) const override {
    check_f32("clamp", args.x);
    cpu::clamp(submission.stream, args);
  }
  void rope_angles(const Submission& submission, const ops::RopeAnglesArgs& args) const override {
    cpu::rope_angles(submission.stream, args);
  }
  void attention(const Submission& submission, const ops::AttentionArgs& args) const override {
    check_f32("attention", args.qkv);
    const Arena::Scope scope(submission.arena);
    cpu::attention(submission.stream, args, scratch(submission, attention_workspace(args)),
                   attention_kernel(args));
  }
  [[nodiscard]] std::size_t attention_workspace(const ops::AttentionArgs& args) const override {
    return cpu::attention_workspace(args, num_threads_, attention_kernel(args));
  }
  void cross_attention(const Submission& submission,
                       const ops::CrossAttentionArgs& args) const override {
    check_f32("cross_attention", args.q);
    cpu::cross_attention(submission.stream, args, kernels_.rows.attend);
  }
  void head_attention(const Submission& submission,
                      const ops::HeadAttentionArgs& args) const override {
    check_f32("head_attention", args.qkv);
    if (args.norms.q) cpu::normalize_heads(submission.stream, args, kernels_.rows.rms_norm);
    const ops::AttentionArgs attended = ops::attention_args(args);
    const bool rotates_itself = multiplies_16_bits(attended);
    if (args.cos && !rotates_itself) cpu::rotate(submission.stream, args, kernels_.rows.rotate);
    const Arena::Scope scope(submission.arena);
    const cpu::Rotation rotation{args.cos, args.sin};
    cpu::attention(submission.stream, attended, scratch(submission, attention_workspace(attended)),
                   attention_kernel(attended), rotates_itself ? rotation : cpu::Rotation{});
  }
  void prepare_heads(const Submission& submission,
                     const ops::HeadAttentionArgs& args) const override {
    check_f32("head_attention", args.qkv);
    if (args.norms.q) cpu::normalize_heads(submission.stream, args, kernels_.rows.rms_norm);
    if (args.cos) cpu::rotate(submission.stream, args, kernels_.rows.rotate);
  }
  void projected_attention(const Submission& submission,
                           const ops::ProjectedAttentionArgs& args) const override {
    check_f32("projected_attention", args.qkv);
    linear(submission, ops::projection_args(args));
    head_attention(submission, ops::head_attention_args(args));
  }
  void patchify(const Submission& submission, const ops::PatchifyArgs& args) const override {
    check_f32("patchify", args.out);
    cpu::patchify(submission.stream, args);
  }
  void add_positions_bilinear(const Submission& submission,
                              const ops::AddPositionsArgs& args) const override {
    check_f32("add_positions_bilinear", args.x);
    cpu::add_positions_bilinear(submission.stream, args, kernels_.rows.add_weighted4);
  }
  void add_positions_half_pixel(const Submission& submission,
                                const ops::AddPositionsArgs& args) const override {
    check_f32("add_positions_half_pixel", args.x);
    cpu::add_positions_half_pixel(submission.stream, args, kernels_.rows.add_weighted4);
  }
  void add_positions_bicubic(const Submission& submission,
                             const ops::AddPositionsArgs& args) const override {
    check_f32("add_positions_bicubic", args.x);
    cpu::add_positions_bicubic(submission.stream, args, kernels_.rows.add_weighted4);
  }
  void add_positions_antialiased(const Submission& submission,
                                 const ops::AddPositionsArgs& args) const override {
    check_f32("add_positions_antialiased", args.x);
    cpu::add_positions_antialiased(submission.stream, args, kernels_.rows.add_weighted4);
  }
  void interpolate_grids(const Submission& submission,
                         const ops::InterpolateGridsArgs& args) const override {
    check_f32("interpolate_grids", args.out);
    cpu::interpolate_grids(submission.stream, args, kernels_.rows.add_weighted4);
  }
  void gather_rows(const Submission& submission, const ops::GatherRowsArgs& args) const override {
    check_f32("gather_rows", args.x);
    cpu::gather_rows(submission.stream, args);
  }
  void copy_row_blocks(const Submission& submission,
                       const ops::CopyRowBlocksArgs& args) const override {
    check_f32("copy_row_blocks", args.out);
    cpu::copy_row_blocks(submission.stream, args);
  }
  void add_table(const Submission& submission, const ops::AddTableArgs& args) const override {
    check_f32("add_table", args.x);
    cpu::add_table(submission.stream, args);
  }
  void mean_row_blocks(const Submission& submission,
                       const ops::MeanRowBlocksArgs& args) const override {
    check_f32("mean_row_blocks", args.out);
    cpu::mean_row_blocks(submission.stream, args);
  }
  void im2col_3x3(const Submission& submission, const ops::Im2colArgs& args) const override {
    check_f32("im2col_3x3", args.x);
    cpu::im2col_3x3(submission.stream, args);
  }
  void grid_attention(const Submission& submission,
                      const ops::GridAttentionArgs& args) const override {
    check_f32("grid_attention", args.qkv);
    const Arena::Scope scope(submission.arena);
    cpu::grid_attention(submission.stream, args,
                        scratch(submission, grid_attention_workspace(args)), kernels_.attention);
  }
  [[nodiscard]] std::size_t grid_attention_workspace(
      const ops::GridAttentionArgs& args) const override {
    return cpu::grid_attention_workspace(args, num_threads_, kernels_.attention);
  }

 private:
  [[nodiscard]] const cpu::GemmKernel& gemm_kernel(bool is_int8) const {
    if (is_int8) return kernels_.int8;
    return compute_ == DType::kBF16 ? kernels_.bf16 : kernels_.f32;
  }

  /// Where layers multiply bf16, or the one before multiplied 8 bits, attention multiplies 16 bits,
  /// too.
  [[nodiscard]] bool multiplies_16_bits(const ops::AttentionArgs& args) const {
    return compute_ == DType::kBF16 || args.projection_dtype == DType::kI8;
  }
  /// Attention in 16 bits is bf16 where layers multiply it in tiles, and integers elsewhere, which
  /// lose less.
  [[nodiscard]] const cpu::AttentionKernel& attention_kernel(const ops::AttentionArgs& args) const {
    if (!multiplies_16_bits(args)) return kernels_.attention;
    const bool is_bf16 = compute_ == DType::kBF16 && kernels_.attention_bf16.run != nullptr;
    return is_bf16 ? kernels_.attention_bf16 : kernels_.attention16;
  }

  cpu::IsaKernels kernels_;
  int num_threads_;
  DType compute_;
};

}  // namespace

bool gains_by_bf16(CpuIsa isa) {
  return cpu::choose_kernels(cpu::features_up_to(isa)).bf16.is_fast;
}

std::string describe_cpu_kernels() {
  const cpu::IsaKernels kernels = cpu::choose_kernels(cpu::cpu_features());
  return cat(to_string(detect_cpu_isa()), ": float32 ", kernels.f32.name, ", bfloat16 ",
             kernels.bf16.name, ", int8 ", kernels.int8.name);
}

std::unique_ptr<Kernels> make_cpu_kernels(CpuIsa isa, int num_threads, DType compute) {
  const std::span<const CpuIsa> isas = cpu_isas();
  FOVEA_CHECK(std::find(isas.begin(), isas.end(), isa) != isas.end(), kUnsupported,
              "this machine supports ", to_string(detect_cpu_isa()), " at most, ", to_string(isa),
              " was asked for");
  FOVEA_CHECK(num_threads >= 0, kInvalidArgument, "number of threads must be >= 0, got ",
              num_threads);
  FOVEA_CHECK(compute == DType::kF32 || compute == DType::kBF16, kInvalidArgument,
              "linear layers of a CPU multiply float32 or bfloat16, not ", to_string(compute));
  return std::make_unique<CpuKernels>(isa, num_threads == 0 ? available_cpus() : num_threads,
                                      compute);
}

}  // namespace fovea
