// The multiply-add peak of 64-bit ARM; 20 accumulators, because some processors have four units.
#include "ops/cpu/isa/isa_kernels.h"
#include "ops/cpu/isa/peak_loops.h"

namespace fovea::cpu {

namespace {

constexpr float kFactor = 1e-4f;
constexpr double kAccumulators = 20;

void run_neon(std::int64_t rounds) {
  asm volatile(
      "ld1r {v30.4s}, [%[factor]]\n\t"
      "mov v31.16b, v30.16b\n"
      "1:\n\t"
      "fmla v0.4s, v30.4s, v31.4s\n\t"
      "fmla v1.4s, v30.4s, v31.4s\n\t"
      "fmla v2.4s, v30.4s, v31.4s\n\t"
      "fmla v3.4s, v30.4s, v31.4s\n\t"
      "fmla v4.4s, v30.4s, v31.4s\n\t"
      "fmla v5.4s, v30.4s, v31.4s\n\t"
      "fmla v6.4s, v30.4s, v31.4s\n\t"
      "fmla v7.4s, v30.4s, v31.4s\n\t"
      "fmla v8.4s, v30.4s, v31.4s\n\t"
      "fmla v9.4s, v30.4s, v31.4s\n\t"
      "fmla v10.4s, v30.4s, v31.4s\n\t"
      "fmla v11.4s, v30.4s, v31.4s\n\t"
      "fmla v12.4s, v30.4s, v31.4s\n\t"
      "fmla v13.4s, v30.4s, v31.4s\n\t"
      "fmla v14.4s, v30.4s, v31.4s\n\t"
      "fmla v15.4s, v30.4s, v31.4s\n\t"
      "fmla v16.4s, v30.4s, v31.4s\n\t"
      "fmla v17.4s, v30.4s, v31.4s\n\t"
      "fmla v18.4s, v30.4s, v31.4s\n\t"
      "fmla v19.4s, v30.4s, v31.4s\n\t"
      "subs %[rounds], %[rounds], #1\n\t"
      "b.ne 1b"
      : [rounds] "+r"(rounds)
      : [factor] "r"(&kFactor), "m"(kFactor)
      : "cc", "v0", "v1", "v2", "v3", "v4", "v5", "v6", "v7", "v8", "v9", "v10", "v11", "v12",
        "v13", "v14", "v15", "v16", "v17", "v18", "v19", "v30", "v31");
}

/// Matrices of 2 x 4 times 4 x 2 bf16.
void run_neon_bf16(std::int64_t rounds) {
  asm volatile(
      ".arch armv8.2-a+bf16\n\t"
      "ld1r {v30.4s}, [%[factor]]\n\t"
      "mov v31.16b, v30.16b\n"
      "1:\n\t"
      "bfmmla v0.4s, v30.8h, v31.8h\n\t"
      "bfmmla v1.4s, v30.8h, v31.8h\n\t"
      "bfmmla v2.4s, v30.8h, v31.8h\n\t"
      "bfmmla v3.4s, v30.8h, v31.8h\n\t"
      "bfmmla v4.4s, v30.8h, v31.8h\n\t"
      "bfmmla v5.4s, v30.8h, v31.8h\n\t"
      "bfmmla v6.4s, v30.8h, v31.8h\n\t"
      "bfmmla v7.4s, v30.8h, v31.8h\n\t"
      "bfmmla v8.4s, v30.8h, v31.8h\n\t"
      "bfmmla v9.4s, v30.8h, v31.8h\n\t"
      "bfmmla v10.4s, v30.8h, v31.8h\n\t"
      "bfmmla v11.4s, v30.8h, v31.8h\n\t"
      "bfmmla v12.4s, v30.8h, v31.8h\n\t"
      "bfmmla v13.4s, v30.8h, v31.8h\n\t"
      "bfmmla v14.4s, v30.8h, v31.8h\n\t"
      "bfmmla v15.4s, v30.8h, v31.8h\n\t"
      "bfmmla v16.4s, v30.8h, v31.8h\n\t"
      "bfmmla v17.4s, v30.8h, v31.8h\n\t"
      "bfmmla v18.4s, v30.8h, v31.8h\n\t"
      "bfmmla v19.4s, v30.8h, v31.8h\n\t"
      "subs %[rounds], %[rounds], #1\n\t"
      "b.ne 1b\n\t"
      ".arch armv8-a"
      : [rounds] "+r"(rounds)
      : [factor] "r"(&kFactor), "m"(kFactor)
      : "cc", "v0", "v1", "v2", "v3", "v4", "v5", "v6", "v7", "v8", "v9", "v10", "v11", "v12",
        "v13", "v14", "v15", "v16", "v17", "v18", "v19", "v30", "v31");
}

}  // namespace

PeakLoop f32_peak_loop() { return {run_neon, 2 * 4 * kAccumulators}; }

std::optional<PeakLoop> bf16_peak_loop() {
  if (!has_all(cpu_features(), kNeonBf16Unit.required)) return std::nullopt;
  return PeakLoop{run_neon_bf16, 2 * 16 * kAccumulators};
}

}  // namespace fovea::cpu
