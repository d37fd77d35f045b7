#pragma once

#include <cstdint>
#include <string_view>

#include "core/thread_pool.h"
#include "fovea/embedding.h"

namespace fovea {

/// @param rate EngineOptions::video_pruning_rate.
/// @throws Error(kInvalidArgument) unless 0 <= rate < 1, Error(kUnsupported) naming the family if
/// the rate is not 0 and videos of the architecture are not pruned.
void check_video_pruning(std::string_view architecture, double rate);

/// Rows of a video that remain: max(rows_per_frame, floor(rows * (1 - rate))).
/// @param rows of the whole video, the same number for every frame. @param num_frames temporal
/// patches.
/// Source: docs/reference/qwen_glm.md, "Pruned videos".
[[nodiscard]] std::int64_t num_retained(std::int64_t rows, std::int64_t num_frames, double rate);

/// Keeps the rows of a video that differ most from the rows in their place in the frame before, and
/// all of the first frame, in their order; sets `video.retained`. Compares the rows as they are, in
/// the dtype of the caller. The time is added to times.output_ms.
/// @param video with a grid, not pruned yet, in which grid[0] divides the rows.
/// Source: docs/reference/qwen_glm.md, "Pruned videos".
void prune_video(Embedding& video, double rate, ThreadPool& pool);

}  // namespace fovea
