#pragma once

#include <optional>

namespace fovea::cpu {

/// Measures the multiply-add rate of this processor in GFLOP/s (two per multiply-add), with loops
/// that only use registers, with the widest vectors it has. Every CPU benchmark is compared with
/// it. Repeats for about `seconds` on `num_threads` threads at once and returns the best
/// repetition.
/// @param num_threads >= 1. @param seconds > 0.
[[nodiscard]] double fma_peak_gflops(int num_threads, double seconds);

/// The same for products of bf16 with sums in f32, by VDPBF16PS; absent where it is not used.
[[nodiscard]] std::optional<double> bf16_peak_gflops(int num_threads, double seconds);

}  // namespace fovea::cpu
