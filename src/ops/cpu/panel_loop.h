#pragma once

// The register tiles of one task, panel by panel, for layers whose tiles run through all of k
// (int8, bf16): weights come from L2, into which the panel before prefetched them. A tile is
// finished (scales, bias, activation, residual) while the next one is multiplied: AMX multiplies in
// a unit of its own, and vectors have nothing else to do meanwhile.
//
// Include only from a leaf: templates over Work, a template over a type of the leaf, with
//   Vector                 has prefetch
//   Sum                    32 bits: float or std::int32_t
//   task                   has out, out_stride
//   kRows                  most rows of a tile
//   num_rows()             of the task
//   num_panels()
//   panel(column)          its packed weights, panel_rows() times kPanelRowBytes
//   multiply(tile, upcoming, sums, beside)
//                          sums[rows][kPanelColumns]. Calls beside() between its instructions as
//                          often as beside_calls() says, or never
//   finish(tile, sums)     from sums to output

#include <cstddef>
#include <cstdint>

#include "ops/cpu/linear/task.h"

namespace fovea::cpu {

/// Bytes of a row of a panel: of every column the values of k that one instruction multiplies.
inline constexpr std::int64_t kPanelRowBytes = kPanelColumns * 4;

/// Rows [row, row + rows) of a task and the columns of one panel, from `column` on.
struct PanelTile {
  std::int64_t row = 0;
  std::int64_t rows = 0;
  std::int64_t column = 0;
};

/// A tile that is multiplied but not finished.
template <class Work>
struct PendingTile {
  PanelTile tile;
  typename Work::Sum* sums = nullptr;  ///< of the first row

  /// Finishes the next `rows` rows, as far as there are any.
  void finish(const Work& work, std::int64_t rows) {
    if (rows > tile.rows) rows = tile.rows;
    if (rows == 0) return;
    PanelTile part = tile;
    part.rows = rows;
    work.finish(part, sums);
    sums += rows * kPanelColumns;
    tile.row += rows;
    tile.rows -= rows;
  }
  void finish(const Work& work) { finish(work, tile.rows); }
};

/// The tile is multiplied while the lines that it will be stored to arrive.
template <class V, class Task>
void prefetch_output(const Task& task, const PanelTile& tile) {
  for (std::int64_t r = tile.row; r < tile.row + tile.rows; ++r) {
    const auto* const out =
        reinterpret_cast<const std::byte*>(task.out + r * task.out_stride + tile.column);
    V::prefetch(out);
    V::prefetch(out + kLineBytes);
  }
}

/// Every panel times all rows of the task, in tiles of nearly equal height, which together prefetch
/// the next panel.
template <class Work>
void multiply_panels(Work& work) {
  alignas(64) typename Work::Sum sums[2][Work::kRows * kPanelColumns];
  const std::int64_t num_tiles = (work.num_rows() + Work::kRows - 1) / Work::kRows;
  const std::int64_t height = work.num_rows() / num_tiles;
  const std::int64_t num_taller = work.num_rows() % num_tiles;
  const std::int64_t step = (kPanelRowBytes + num_tiles - 1) / num_tiles;
  PendingTile<Work> pending;
  int turn = 0;
  for (std::int64_t panel = 0; panel < work.num_panels(); ++panel) {
    PanelTile tile{.row = 0, .rows = 0, .column = panel * kPanelColumns};
    Upcoming upcoming{work.panel(tile.column + kPanelColumns), step};
    for (std::int64_t t = 0; t < num_tiles; ++t) {
      tile.rows = height + (t < num_taller ? 1 : 0);
      const std::int64_t calls = work.beside_calls();
      const std::int64_t rows_a_call = (pending.tile.rows + calls - 1) / calls;
      prefetch_output<typename Work::Vector>(work.task, tile);
      work.multiply(tile, upcoming, sums[turn], [&] { pending.finish(work, rows_a_call); });
      pending.finish(work);
      pending = {tile, sums[turn]};
      turn = 1 - turn;
      tile.row += tile.rows;
      upcoming.data += step * work.panel_rows();
    }
  }
  pending.finish(work);
}

}  // namespace fovea::cpu
