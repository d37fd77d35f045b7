#pragma once

#include "fovea/embedding.h"
#include "fovea/media.h"
#include "fovea/options.h"

namespace fovea {

/// Hands finished rows of an item (MediaItem::Source::kRows, checked) on to its result.
void hand_on_rows(const MediaItem& media, RowDType dtype, Embedding& result);

}  // namespace fovea
