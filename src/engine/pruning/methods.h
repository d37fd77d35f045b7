#pragma once

#include <cstdint>
#include <vector>

#include "core/thread_pool.h"
#include "fovea/embedding.h"

namespace fovea {

/// A video whose rows are to be chosen from.
struct PrunedVideo {
  const Embedding& rows;    ///< of the whole video
  std::int64_t num_frames;  ///< temporal patches, each with as many rows
  std::int64_t count;       ///< rows that stay

  [[nodiscard]] std::int64_t rows_per_frame() const { return rows.rows / num_frames; }
};

/// Indices of the rows that differ most from the rows in their place in the frame before, and of
/// all rows of the first frame, ascending; of equal differences the first stay.
/// Source: docs/reference/qwen_glm.md, "Pruned videos".
[[nodiscard]] std::vector<std::int64_t> kept_by_evs(const PrunedVideo& video, ThreadPool& pool);

/// Indices of the rows that are least like the means of their frame and of the video, ascending.
/// Frames that are unlike the video keep more; of equal rows the first stay.
/// @param rate of pruning, from which the share of every frame follows.
/// Source: docs/reference/qwen_glm.md, "Pruned videos".
[[nodiscard]] std::vector<std::int64_t> kept_by_vidcom2(const PrunedVideo& video, double rate,
                                                        ThreadPool& pool);

}  // namespace fovea
