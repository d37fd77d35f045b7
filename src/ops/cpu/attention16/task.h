#pragma once

#include <cstdint>

#include "ops/cpu/vector/vector_kernels.h"

// The seam between attention in 16-bit integers and the units of instruction sets: plain data
// and function pointers, as in ops/cpu/int8/task.h.
namespace fovea::cpu {

/// Largest integers of probabilities and of values: kKeyBlock * kProbabilitySteps * kValueSteps <
/// 2^31, so the sum over a block of keys is exact in 32 bits.
inline constexpr std::int32_t kProbabilitySteps = 4095;
inline constexpr std::int32_t kValueSteps = 4095;
static_assert(kKeyBlock * kProbabilitySteps * kValueSteps <= INT32_MAX);

/// Most queries of one task: every task quantizes the keys and values of its sequence once, so many
/// more than of kMaxTaskQueries; with what they give they take less than half of a level-2 cache of
/// 1 MB, but for heads of more than 198.
[[nodiscard]] std::int64_t attention16_task_queries(std::int64_t head_dim) noexcept;

/// Floats of scratch that one task needs.
[[nodiscard]] std::int64_t attention16_scratch_floats(std::int64_t head_dim) noexcept;

/// Attention in integers of 16 bits (attention16/body.h).
struct Attention16Leaf {
  /// As VectorKernels::attention, for tasks without a bias of up to attention16_task_queries and
  /// with attention16_scratch_floats.
  void (*attention)(const AttentionTask& task);
  const char* name;
};

}  // namespace fovea::cpu
