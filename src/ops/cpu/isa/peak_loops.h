#pragma once

#include <cstdint>
#include <optional>

// Loops that only use registers, for the multiply-add peak. They are assembly because compilers may
// keep such accumulators in memory, which would give a third of the true rate. Each is, for
// independent vectors a_i,
//   do { a_i = x * y + a_i for all i; } while (--rounds != 0);
// and has enough of them to cover the latency (4 or 5 cycles) times the units of current
// processors. x * y is a small number, so the sums stay ordinary for any number of rounds.
namespace fovea::cpu {

struct PeakLoop {
  void (*run)(std::int64_t rounds);
  double flops_per_round;
};

/// Products of f32, with the widest vectors of this machine.
[[nodiscard]] PeakLoop f32_peak_loop();

/// Products of bf16 with sums in f32; absent where layers in bf16 use other instructions.
[[nodiscard]] std::optional<PeakLoop> bf16_peak_loop();

}  // namespace fovea::cpu
