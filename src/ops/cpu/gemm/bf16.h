#pragma once

// The GEMM in bf16, written once for all instruction sets; gemm.h defines its results. Include only
// from the unit of an instruction set. The unit names its tiles, Tiles.

#include "ops/cpu/gemm/finish.h"
#include "ops/cpu/gemm/panel_loop.h"

namespace fovea::cpu {

/// Rounds rows to nearest, ties to even; denormal numbers become zero.
template <class V>
void round_rows(const PrepareTask& task) {
  constexpr std::int64_t kStepValues = 2 * kStepRows;
  for (std::int64_t r = 0; r < task.rows; ++r) {
    const float* const x = task.x + r * task.cols;
    std::byte* const to = task.values + r * task.stride;
    std::int64_t c = 0;
    for (; c + V::kWidth <= task.cols; c += V::kWidth) V::store_bf16(to + 2 * c, V::load(x + c));
    if (c < task.cols) {
      V::store_bf16(to + 2 * c, V::load_some(x + c, task.cols - c));
      c += V::kWidth;
    }
    for (; c % kStepValues != 0; c += V::kWidth) V::store_bf16(to + 2 * c, V::broadcast(0.0f));
  }
}

template <class V, ops::Activation kActivation>
struct Bf16Finish {
  using Vector = V;

  static void finish(const GemmTask& task, const PanelTile& tile, const float* sums) {
    for (std::int64_t r = 0; r < tile.rows; ++r)
      finish_row<V, kActivation>(task, tile.row + r, tile.column, sums + r * kPanelColumns);
  }
};

template <class V, class Tiles>
void multiply_bf16(const GemmTask& task) {
  with_constant(task.activation, [&]<ops::Activation kActivation>() {
    multiply_panels<Bf16Finish<V, kActivation>, Tiles>(task);
  });
}

/// @param rows of one task.
template <class V, class Tiles>
constexpr GemmKernel bf16_kernel(const char* name, std::int64_t rows, bool is_fast) {
  return {.name = name,
          .format = GemmFormat::kBf16,
          .prepare = &round_rows<V>,
          .multiply = &multiply_bf16<V, Tiles>,
          .limits = {.tile_rows = Tiles::kRows, .rows = rows, .panels = 32},
          .is_fast = is_fast};
}

/// The kernel in vectors. 4 tiles of 14 rows share what is fetched of the weights: with 4096
/// features the 465 KB of 56 rows stay in the L2 of the thread beside two panels.
template <class V, int kTileRows>
constexpr GemmKernel bf16_kernel(const char* name, bool is_fast = false) {
  return bf16_kernel<V, VectorTiles<Bf16Numbers<V>, kTileRows>>(name, 56, is_fast);
}

}  // namespace fovea::cpu
