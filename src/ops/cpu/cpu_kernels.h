#pragma once

#include <memory>
#include <optional>
#include <string>

#include "ops/cpu/isa/cpu_features.h"
#include "ops/kernels.h"

namespace fovea {

/// Whether linear layers take less time in bf16 than in f32 on this machine, with at most `isa`.
[[nodiscard]] bool gains_by_bf16(CpuIsa isa);

/// What this machine computes with: its instruction set, and the units whose kernels multiply each
/// format, for example "avx512: float32 avx512, bfloat16 amx, int8 amx".
[[nodiscard]] std::string describe_cpu_kernels();

/// Creates the kernels of the CPU backend: f32 activations, weights kept in the checkpoint's dtype
/// or in bf16.
/// @param isa the best instruction set to use; tests lower it, everybody else passes
///   detect_cpu_isa().
/// @param num_threads number of threads that scratch memory is for (Kernels::attention_workspace):
///   that of the device; 0 means available_cpus(). If the device has more, some ops use only this
///   many.
/// @param compute what linear layers multiply, kF32 or kBF16 (ops/cpu/gemm/gemm.h); all else
///   is f32.
/// @throws Error(kUnsupported) if this machine does not have `isa`, Error(kInvalidArgument) if
///   num_threads < 0 or `compute` is another dtype.
[[nodiscard]] std::unique_ptr<Kernels> make_cpu_kernels(CpuIsa isa, int num_threads = 0,
                                                        DType compute = DType::kF32);

namespace cpu {

/// Measures the multiply-add rate of this processor in GFLOP/s (two per multiply-add), with loops
/// that only use registers, with the widest vectors it has. Every CPU benchmark is compared with
/// it. Repeats for about `seconds` on `num_threads` threads at once and returns the best
/// repetition.
/// @param num_threads >= 1. @param seconds > 0.
[[nodiscard]] double fma_peak_gflops(int num_threads, double seconds);

/// The same for products of bf16 with sums in f32, by VDPBF16PS or BFMMLA; absent where neither is
/// used.
[[nodiscard]] std::optional<double> bf16_peak_gflops(int num_threads, double seconds);

}  // namespace cpu
}  // namespace fovea
