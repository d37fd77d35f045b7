// The CPU backend's Kernels: every function forwards to the op's file.
#include "ops/cpu/cpu_kernels.h"

#include "core/thread_pool.h"
#include "ops/cpu/attention.h"
#include "ops/cpu/grid.h"
#include "ops/cpu/linear.h"
#include "ops/cpu/norm.h"
#include "ops/cpu/patch.h"
#include "ops/cpu/rope.h"
#include "ops/cpu/rows.h"

namespace fovea {

namespace {

/// The op functions let every float dtype pass; this backend computes in f32 alone.
void check_f32(const char* op, const ConstTensorView& activation) {
  FOVEA_CHECK(activation.dtype == DType::kF32, kUnsupported, op,
              ": the CPU backend has float32 activations, got ", to_string(activation.dtype));
}

class CpuKernels final : public Kernels {
 public:
  CpuKernels(CpuIsa isa, int num_threads) noexcept : isa_(isa), num_threads_(num_threads) {}

  [[nodiscard]] ops::PackedLinear pack_linear(Device& device, ConstTensorView weight,
                                              ConstTensorView bias) const override {
    return cpu::pack_linear(device, weight, bias);
  }
  void linear(Stream& stream, const ops::LinearArgs& args) const override {
    check_f32("linear", args.x);
    cpu::linear(stream, args, isa_);
  }
  void layer_norm(Stream& stream, const ops::LayerNormArgs& args) const override {
    check_f32("layer_norm", args.x);
    cpu::layer_norm(stream, args, isa_);
  }
  void rms_norm(Stream& stream, const ops::RmsNormArgs& args) const override {
    check_f32("rms_norm", args.x);
    cpu::rms_norm(stream, args, isa_);
  }
  void rope_angles(Stream& stream, const ops::RopeAnglesArgs& args) const override {
    cpu::rope_angles(stream, args);
  }
  void rope(Stream& stream, const ops::RopeArgs& args) const override {
    check_f32("rope", args.qkv);
    cpu::rope(stream, args, isa_);
  }
  [[nodiscard]] std::size_t attention_workspace(const ops::AttentionArgs& args) const override {
    return cpu::attention_workspace(args, num_threads_);
  }
  void attention(Stream& stream, const ops::AttentionArgs& args) const override {
    check_f32("attention", args.qkv);
    if (args.x) cpu::linear(stream, ops::projection_args(args), isa_);
    if (args.cos) cpu::rope(stream, ops::rope_args(args), isa_);
    cpu::attention(stream, args, isa_);
  }
  void patchify(Stream& stream, const ops::PatchifyArgs& args) const override {
    check_f32("patchify", args.out);
    cpu::patchify(stream, args);
  }
  void add_positions_bilinear(Stream& stream, const ops::AddPositionsArgs& args) const override {
    check_f32("add_positions_bilinear", args.x);
    cpu::add_positions_bilinear(stream, args, isa_);
  }
  void gather_rows(Stream& stream, const ops::GatherRowsArgs& args) const override {
    check_f32("gather_rows", args.x);
    cpu::gather_rows(stream, args);
  }
  void copy_row_blocks(Stream& stream, const ops::CopyRowBlocksArgs& args) const override {
    check_f32("copy_row_blocks", args.out);
    cpu::copy_row_blocks(stream, args);
  }
  void add_table(Stream& stream, const ops::AddTableArgs& args) const override {
    check_f32("add_table", args.x);
    cpu::add_table(stream, args);
  }
  void im2col_3x3(Stream& stream, const ops::Im2colArgs& args) const override {
    check_f32("im2col_3x3", args.x);
    cpu::im2col_3x3(stream, args);
  }
  [[nodiscard]] std::size_t grid_attention_workspace(
      const ops::GridAttentionArgs& args) const override {
    return cpu::grid_attention_workspace(args, num_threads_);
  }
  void grid_attention(Stream& stream, const ops::GridAttentionArgs& args) const override {
    check_f32("grid_attention", args.qkv);
    cpu::grid_attention(stream, args, isa_);
  }

 private:
  CpuIsa isa_;
  int num_threads_;
};

}  // namespace

CpuIsa detect_cpu_isa() noexcept {
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
      __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq")) {
    return CpuIsa::kAvx512;
  }
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return CpuIsa::kAvx2;
  return CpuIsa::kPortable;
}

const char* to_string(CpuIsa isa) noexcept {
  switch (isa) {
    case CpuIsa::kPortable: return "portable";
    case CpuIsa::kAvx2: return "avx2";
    case CpuIsa::kAvx512: return "avx512";
  }
  return "unknown";
}

std::unique_ptr<Kernels> make_cpu_kernels(CpuIsa isa, int num_threads) {
  FOVEA_CHECK(isa <= detect_cpu_isa(), kUnsupported, "this machine supports ",
              to_string(detect_cpu_isa()), " at most, ", to_string(isa), " was asked for");
  FOVEA_CHECK(num_threads >= 0, kInvalidArgument, "number of threads must be >= 0, got ",
              num_threads);
  return std::make_unique<CpuKernels>(isa, num_threads == 0 ? available_cpus() : num_threads);
}

}  // namespace fovea
