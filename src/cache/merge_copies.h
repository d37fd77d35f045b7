#pragma once

#include <cstddef>
#include <vector>

#include "fovea/cached_rows.h"
#include "fovea/tower/core/row_copy.h"

namespace fovea {

/// The copies that merge_rows() consists of, wherever rows and embeddings lie: for each run of
/// positions one of the embeddings and one for each deepstack level, whose memory is zeroed first.
/// They write to different places. @throws Error(kInvalidArgument) as merge_rows().
[[nodiscard]] std::vector<RowCopy> merge_copies(const GatheredRows& gathered,
                                                const EmbeddingsView& target);
/// Bytes of the deepstack levels.
[[nodiscard]] std::size_t level_bytes(const EmbeddingsView& target);

}  // namespace fovea
