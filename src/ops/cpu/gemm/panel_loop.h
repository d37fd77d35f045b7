#pragma once

// The register tiles of one task, panel by panel, for formats whose tiles run through all of k
// (bf16, int8): weights come from L2, into which the panel before prefetched them. A tile is
// finished (scales, bias, activation, residual) while the next one is multiplied: AMX multiplies in
// a unit of its own, and vectors have nothing else to do meanwhile.
//
// Include only from the unit of an instruction set. All are templates over the types of a format:
//   Tiles                   VectorTiles<Numbers, kTileRows> or AmxTiles<Instructions>
//   Finish::Vector          has prefetch
//   Finish::finish(task, tile, sums)   from sums to output

#include "ops/cpu/gemm/micro_kernel.h"

namespace fovea::cpu {

/// Rows [row, row + rows) of a task and the columns of one panel, from `column` on.
struct PanelTile {
  std::int64_t row;
  std::int64_t rows;
  std::int64_t column;
};

/// Calls body(first row, rows) for tiles of nearly equal height, of at most kMost rows.
/// @return how many there are.
template <int kMost, class F>
std::int64_t for_tiles(std::int64_t rows, const F& body) {
  const std::int64_t tiles = (rows + kMost - 1) / kMost;
  const std::int64_t height = rows / tiles;
  const std::int64_t taller = rows % tiles;
  std::int64_t row = 0;
  for (std::int64_t tile = 0; tile < tiles; ++tile) {
    const std::int64_t tile_rows = height + (tile < taller ? 1 : 0);
    body(row, tile_rows);
    row += tile_rows;
  }
  return tiles;
}

/// A tile that is multiplied but not finished.
template <class Finish, class Sum>
struct PendingTile {
  PanelTile tile;
  Sum* sums;  ///< of the first row

  /// Finishes the next `rows` rows, as far as there are any.
  void finish(const GemmTask& task, std::int64_t rows) {
    if (rows > tile.rows) rows = tile.rows;
    if (rows == 0) return;
    PanelTile part = tile;
    part.rows = rows;
    Finish::finish(task, part, sums);
    sums += rows * kPanelColumns;
    tile.row += rows;
    tile.rows -= rows;
  }
};

/// The tile is multiplied while the lines that it will be stored to arrive.
template <class V>
void prefetch_output(const GemmTask& task, const PanelTile& tile) {
  for (std::int64_t r = tile.row; r < tile.row + tile.rows; ++r) {
    const auto* const out =
        reinterpret_cast<const std::byte*>(task.out + r * task.out_stride + tile.column);
    V::prefetch(out);
    V::prefetch(out + kLineBytes);
  }
}

/// Every panel times all rows of the task, in tiles of nearly equal height, which together prefetch
/// the next panel.
template <class Finish, class Tiles>
void multiply_panels(const GemmTask& task) {
  using Sum = typename Tiles::Sum;
  alignas(64) Sum sums[2][Tiles::kRows * kPanelColumns];
  Tiles tiles;
  const std::int64_t num_tiles = (task.rows + Tiles::kRows - 1) / Tiles::kRows;
  const std::int64_t step = (kPanelRowBytes + num_tiles - 1) / num_tiles;
  const std::int64_t beside_calls = (task.depth + kStepRows - 1) / kStepRows;
  PendingTile<Finish, Sum> pending{{0, 0, 0}, nullptr};
  int turn = 0;
  for (std::int64_t index = 0; index < task.num_panels; ++index) {
    const std::byte* const panel = task.panels + index * task.panel_bytes;
    Upcoming upcoming{panel + task.panel_bytes, step};
    for_tiles<Tiles::kRows>(task.rows, [&](std::int64_t row, std::int64_t rows) {
      const PanelTile tile{row, rows, index * kPanelColumns};
      const std::int64_t rows_a_call = (pending.tile.rows + beside_calls - 1) / beside_calls;
      prefetch_output<typename Finish::Vector>(task, tile);
      tiles.multiply({.x = {task.x + row * task.x_stride, task.x_stride},
                      .rows = rows,
                      .panel = panel,
                      .depth = task.depth,
                      .upcoming = upcoming},
                     sums[turn], [&] { pending.finish(task, rows_a_call); });
      pending.finish(task, pending.tile.rows);
      pending = {tile, sums[turn]};
      turn = 1 - turn;
      upcoming.data += step * task.depth;
    });
  }
  pending.finish(task, pending.tile.rows);
}

}  // namespace fovea::cpu
