#pragma once

// The GEMM in integers of 8 bits, written once for all instruction sets; gemm.h defines its
// results. Include only from the unit of an instruction set. The unit names its tiles, Tiles.
//
// All units give the same bits: sums of integers are exact, and every operation on floats is the
// same one, with fma rounded once and powers of 2 below 2^-126 flushed to 0.

#include "ops/cpu/gemm/finish.h"
#include "ops/cpu/gemm/fitted_gelu.h"
#include "ops/cpu/gemm/int8_rows.h"
#include "ops/cpu/gemm/panel_loop.h"

namespace fovea::cpu {

/// Adds the excess of its outliers to the sums of a row.
template <class V>
void add_outliers(const Int8Row& row, const std::byte* panel, std::int32_t* sums) {
  for (std::int32_t i = 0; i < row.num_outliers; ++i) {
    const Outlier& outlier = row.outliers[i];
    const std::byte* const weights = panel + outlier.k / kGroupBytes * kPanelRowBytes;
    for (std::int64_t c = 0; c < kPanelColumns; c += V::kWidth) {
      V::store_int(sums + c, V::add_int8(V::load_int(sums + c), outlier.excess,
                                         V::load_int(weights + c * kGroupBytes),
                                         static_cast<int>(outlier.k % kGroupBytes)));
    }
  }
}

/// out = residual + activation(scale_n (scale_r sum + offset_r sum_n) + middle_n total_r + bias)
/// for one vector of columns of a tile, of which `count` exist.
template <class V, ops::Activation kActivation>
void finish_int8_columns(const GemmTask& task, const PanelTile& tile, std::int64_t column,
                         std::int64_t count, const std::int32_t* sums) {
  using Reg = typename V::Reg;
  const float* const terms = task.int8_columns + column;
  const Reg w_scale = V::load(terms);
  const Reg w_middle = V::load(terms + task.int8_stride);
  const Reg w_sum = V::load(terms + 2 * task.int8_stride);
  const Reg bias = V::load(task.bias + column);
  const float* residual = task.residual;
  if (residual != nullptr) residual += tile.row * task.residual_stride + column;
  float* out = task.out + tile.row * task.out_stride + column;
  for (std::int64_t r = 0; r < tile.rows; ++r) {
    const Int8Row& row = task.int8_rows[tile.row + r];
    const Reg sum = V::to_float(V::load_int(sums + r * kPanelColumns));
    const Reg product =
        V::fma(V::broadcast(row.scale), sum, V::mul(V::broadcast(row.offset), w_sum));
    const Reg added = V::fma(w_middle, V::broadcast(row.total), bias);
    store_result<V>(activate_fitted<V, kActivation>(V::fma(w_scale, product, added)), residual, out,
                    count);
    if (residual != nullptr) residual += task.residual_stride;
    out += task.out_stride;
  }
}

template <class V, ops::Activation kActivation>
struct Int8Finish {
  using Vector = V;

  static void finish(const GemmTask& task, const PanelTile& tile, std::int32_t* sums) {
    const std::byte* const panel = task.panels + tile.column / kPanelColumns * task.panel_bytes;
    for (std::int64_t r = 0; r < tile.rows; ++r)
      add_outliers<V>(task.int8_rows[tile.row + r], panel, sums + r * kPanelColumns);
    for (std::int64_t c = 0; c < kPanelColumns; c += V::kWidth) {
      const std::int64_t column = tile.column + c;
      if (column >= task.columns) return;
      finish_int8_columns<V, kActivation>(task, tile, column, task.columns - column, sums + c);
    }
  }
};

template <class V, class Tiles>
void multiply_int8(const GemmTask& task) {
  with_constant(task.activation, [&]<ops::Activation kActivation>() {
    multiply_panels<Int8Finish<V, kActivation>, Tiles>(task);
  });
}

/// @param rows of one task.
template <class V, class Tiles>
constexpr GemmKernel int8_kernel(const char* name, std::int64_t rows) {
  return {.name = name,
          .format = GemmFormat::kInt8,
          .prepare = &quantize_rows<V>,
          .multiply = &multiply_int8<V, Tiles>,
          .limits = {.tile_rows = Tiles::kRows, .rows = rows, .panels = 32}};
}

/// The kernel in vectors. 8 tiles of 14 rows share what is fetched of the weights: with 4096
/// features the 455 KB of 112 rows stay in the L2 of the thread beside two panels.
template <class V, int kTileRows>
constexpr GemmKernel int8_kernel(const char* name) {
  return int8_kernel<V, VectorTiles<Int8Numbers<V>, kTileRows>>(name, 112);
}

}  // namespace fovea::cpu
