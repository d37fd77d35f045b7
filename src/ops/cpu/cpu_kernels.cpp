// The CPU backend's Kernels: every function forwards to the op's file.
#include "ops/cpu/cpu_kernels.h"

#include "core/thread_pool.h"
#include "ops/cpu/attention.h"
#include "ops/cpu/linear.h"
#include "ops/cpu/norm.h"
#include "ops/cpu/patch.h"
#include "ops/cpu/rope.h"

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
