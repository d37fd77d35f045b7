#pragma once

// The micro-kernels of the bf16 linear layer in the tiles of AMX. Include from a leaf; see
// amx_tiles.h for Instructions.

#include "ops/cpu/bf16/body.h"
#include "ops/cpu/simd/amx_tiles.h"

namespace fovea::cpu {

static_assert(kPairBytes == kAmxPanelBytes && kStepPairs == kAmxRows);

/// 4 tiles of 32 rows share what is fetched of the weights. With 4096 features they take 1 MB of
/// the L2 of the thread, as in int8/amx.cpp.
inline constexpr std::int64_t kBf16AmxTaskRows = 128;

template <class Instructions>
struct Bf16AmxTiles : AmxTiles<Instructions> {
  /// As multiply_bf16_tile, for 1..kRows rows, but for the order of the sums (bf16_linear.h);
  /// `beside` once a step.
  template <class Beside>
  void multiply(const Bf16Rows& x, std::int64_t rows, const std::byte* panel, std::int64_t pairs,
                Upcoming upcoming, float* sums, const Beside& beside) {
    AmxTiles<Instructions>::multiply({.x = x.values,
                                      .stride = x.stride,
                                      .rows = rows,
                                      .panel = panel,
                                      .steps = (pairs + kStepPairs - 1) / kStepPairs,
                                      .next = upcoming.data,
                                      .next_bytes = kStepPairs * upcoming.step},
                                     sums, beside);
  }
};

}  // namespace fovea::cpu
