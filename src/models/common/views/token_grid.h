#pragma once

#include <cstdint>

#include "fovea/tower/device/device.h"
#include "fovea/tower/ops/context.h"

namespace fovea::common {

// Rows of views at their place in an item, and rows that no view makes between them. Functions
// submit to ctx.stream, return at once and are safe to capture.

/// Writes `row` as one row of every block of `block_rows` rows. @param row [1, columns] f32.
/// @param out [blocks * block_rows, columns]. @param first the row of a block.
void put_row(ExecContext& ctx, const Tensor& row, TensorView out, std::int64_t block_rows = 1,
             std::int64_t first = 0);

/// A grid of views whose rows of tokens end with a newline each.
struct TokenGrid {
  std::int64_t side = 0;  ///< tokens of a view
  std::int64_t cols = 1;  ///< views in a row
  const Tensor& newline;  ///< [1, columns] f32
};

/// Writes a view to its place in the token grid of an image, and with the last one of a row the
/// newlines. @param index of the view, row by row of the image. @param rows [side^2, columns].
/// @param out [rows of views * side * (cols * side + 1), columns].
void put_view(ExecContext& ctx, const TokenGrid& grid, std::int64_t index, TensorView rows,
              TensorView out);

}  // namespace fovea::common
