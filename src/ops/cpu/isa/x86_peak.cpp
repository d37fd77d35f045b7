// The multiply-add peak of x86; 12 accumulators.
#include "ops/cpu/isa/isa_kernels.h"
#include "ops/cpu/isa/peak_loops.h"

namespace fovea::cpu {

namespace {

constexpr float kFactor = 1e-4f;
constexpr double kAccumulators = 12;

void run_avx512(std::int64_t rounds) {
  asm volatile(
      "vbroadcastss %[factor], %%zmm12\n\t"
      "vmovaps %%zmm12, %%zmm13\n"
      "1:\n\t"
      "vfmadd231ps %%zmm12, %%zmm13, %%zmm0\n\t"
      "vfmadd231ps %%zmm12, %%zmm13, %%zmm1\n\t"
      "vfmadd231ps %%zmm12, %%zmm13, %%zmm2\n\t"
      "vfmadd231ps %%zmm12, %%zmm13, %%zmm3\n\t"
      "vfmadd231ps %%zmm12, %%zmm13, %%zmm4\n\t"
      "vfmadd231ps %%zmm12, %%zmm13, %%zmm5\n\t"
      "vfmadd231ps %%zmm12, %%zmm13, %%zmm6\n\t"
      "vfmadd231ps %%zmm12, %%zmm13, %%zmm7\n\t"
      "vfmadd231ps %%zmm12, %%zmm13, %%zmm8\n\t"
      "vfmadd231ps %%zmm12, %%zmm13, %%zmm9\n\t"
      "vfmadd231ps %%zmm12, %%zmm13, %%zmm10\n\t"
      "vfmadd231ps %%zmm12, %%zmm13, %%zmm11\n\t"
      "dec %[rounds]\n\t"
      "jnz 1b\n\t"
      "vzeroupper"
      : [rounds] "+r"(rounds)
      : [factor] "m"(kFactor)
      : "cc", "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9",
        "xmm10", "xmm11", "xmm12", "xmm13");
}

void run_avx2(std::int64_t rounds) {
  asm volatile(
      "vbroadcastss %[factor], %%ymm12\n\t"
      "vmovaps %%ymm12, %%ymm13\n"
      "1:\n\t"
      "vfmadd231ps %%ymm12, %%ymm13, %%ymm0\n\t"
      "vfmadd231ps %%ymm12, %%ymm13, %%ymm1\n\t"
      "vfmadd231ps %%ymm12, %%ymm13, %%ymm2\n\t"
      "vfmadd231ps %%ymm12, %%ymm13, %%ymm3\n\t"
      "vfmadd231ps %%ymm12, %%ymm13, %%ymm4\n\t"
      "vfmadd231ps %%ymm12, %%ymm13, %%ymm5\n\t"
      "vfmadd231ps %%ymm12, %%ymm13, %%ymm6\n\t"
      "vfmadd231ps %%ymm12, %%ymm13, %%ymm7\n\t"
      "vfmadd231ps %%ymm12, %%ymm13, %%ymm8\n\t"
      "vfmadd231ps %%ymm12, %%ymm13, %%ymm9\n\t"
      "vfmadd231ps %%ymm12, %%ymm13, %%ymm10\n\t"
      "vfmadd231ps %%ymm12, %%ymm13, %%ymm11\n\t"
      "dec %[rounds]\n\t"
      "jnz 1b\n\t"
      "vzeroupper"
      : [rounds] "+r"(rounds)
      : [factor] "m"(kFactor)
      : "cc", "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9",
        "xmm10", "xmm11", "xmm12", "xmm13");
}

/// Without a fused instruction: a_i = a_i * x + x, again two operations per element.
void run_portable(std::int64_t rounds) {
  asm volatile(
      "movss %[factor], %%xmm12\n\t"
      "shufps $0, %%xmm12, %%xmm12\n"
      "1:\n\t"
      "mulps %%xmm12, %%xmm0\n\taddps %%xmm12, %%xmm0\n\t"
      "mulps %%xmm12, %%xmm1\n\taddps %%xmm12, %%xmm1\n\t"
      "mulps %%xmm12, %%xmm2\n\taddps %%xmm12, %%xmm2\n\t"
      "mulps %%xmm12, %%xmm3\n\taddps %%xmm12, %%xmm3\n\t"
      "mulps %%xmm12, %%xmm4\n\taddps %%xmm12, %%xmm4\n\t"
      "mulps %%xmm12, %%xmm5\n\taddps %%xmm12, %%xmm5\n\t"
      "mulps %%xmm12, %%xmm6\n\taddps %%xmm12, %%xmm6\n\t"
      "mulps %%xmm12, %%xmm7\n\taddps %%xmm12, %%xmm7\n\t"
      "mulps %%xmm12, %%xmm8\n\taddps %%xmm12, %%xmm8\n\t"
      "mulps %%xmm12, %%xmm9\n\taddps %%xmm12, %%xmm9\n\t"
      "mulps %%xmm12, %%xmm10\n\taddps %%xmm12, %%xmm10\n\t"
      "mulps %%xmm12, %%xmm11\n\taddps %%xmm12, %%xmm11\n\t"
      "dec %[rounds]\n\t"
      "jnz 1b"
      : [rounds] "+r"(rounds)
      : [factor] "m"(kFactor)
      : "cc", "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9",
        "xmm10", "xmm11", "xmm12");
}

/// Products of bf16: a_i = x_1 * y_1 + x_0 * y_0 + a_i, four operations per element.
void run_avx512_bf16(std::int64_t rounds) {
  asm volatile(
      "vbroadcastss %[factor], %%zmm12\n\t"
      "vmovaps %%zmm12, %%zmm13\n"
      "1:\n\t"
      "vdpbf16ps %%zmm12, %%zmm13, %%zmm0\n\t"
      "vdpbf16ps %%zmm12, %%zmm13, %%zmm1\n\t"
      "vdpbf16ps %%zmm12, %%zmm13, %%zmm2\n\t"
      "vdpbf16ps %%zmm12, %%zmm13, %%zmm3\n\t"
      "vdpbf16ps %%zmm12, %%zmm13, %%zmm4\n\t"
      "vdpbf16ps %%zmm12, %%zmm13, %%zmm5\n\t"
      "vdpbf16ps %%zmm12, %%zmm13, %%zmm6\n\t"
      "vdpbf16ps %%zmm12, %%zmm13, %%zmm7\n\t"
      "vdpbf16ps %%zmm12, %%zmm13, %%zmm8\n\t"
      "vdpbf16ps %%zmm12, %%zmm13, %%zmm9\n\t"
      "vdpbf16ps %%zmm12, %%zmm13, %%zmm10\n\t"
      "vdpbf16ps %%zmm12, %%zmm13, %%zmm11\n\t"
      "dec %[rounds]\n\t"
      "jnz 1b\n\t"
      "vzeroupper"
      : [rounds] "+r"(rounds)
      : [factor] "m"(kFactor)
      : "cc", "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9",
        "xmm10", "xmm11", "xmm12", "xmm13");
}

}  // namespace

PeakLoop f32_peak_loop() {
  switch (detect_cpu_isa()) {
    case CpuIsa::kAvx512: return {run_avx512, 2 * 16 * kAccumulators};
    case CpuIsa::kAvx2: return {run_avx2, 2 * 8 * kAccumulators};
    case CpuIsa::kPortable:
    case CpuIsa::kNeon: break;
  }
  return {run_portable, 2 * 4 * kAccumulators};
}

std::optional<PeakLoop> bf16_peak_loop() {
  const GemmKernel used = choose_kernels(cpu_features()).bf16;
  if (used.multiply != kAvx512Bf16Unit.kernels.bf16.multiply) return std::nullopt;
  return PeakLoop{run_avx512_bf16, 4 * 16 * kAccumulators};
}

}  // namespace fovea::cpu
