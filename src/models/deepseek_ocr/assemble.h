#pragma once

#include "fovea/tower/ops/context.h"
#include "models/deepseek_ocr/config.h"
#include "models/deepseek_ocr/weights.h"

namespace fovea::deepseek_ocr {

/// Outputs of both paths, on the device, of which the items take their share in turn.
struct PathRows {
  TensorView global;  ///< [tokens, n_embed]
  TensorView local;   ///< [tokens, n_embed]; empty where no item is tiled
};

/// Writes the rows of one item: the tiles laid out as the token grid of the whole image, each row
/// of it ended by a newline; the global view; a separator. Takes them from the front of `paths`.
/// Asynchronous on ctx.stream. @param rows [out_rows of the item, n_embed].
/// Source: docs/reference/deepseek_ocr.md, "Order of rows".
void assemble_item(ExecContext& ctx, const Weights& weights, const Views& views,
                   const ItemPlan& plan, PathRows& paths, TensorView rows);

}  // namespace fovea::deepseek_ocr
