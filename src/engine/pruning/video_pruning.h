#pragma once

#include <cstdint>
#include <string_view>

#include "core/thread_pool.h"
#include "fovea/embedding.h"
#include "fovea/options.h"

namespace fovea {

struct ModelFamily;

/// What an engine drops of the rows of videos.
struct PruningRule {
  double rate = 0;  ///< EngineOptions::video_pruning_rate
  PruningMethod method = PruningMethod::kEvs;

  /// Whether items of a modality lose rows.
  [[nodiscard]] bool applies_to(Modality modality) const {
    return rate > 0 && modality == Modality::kVideo;
  }
};

[[nodiscard]] PruningRule pruning_of(const EngineOptions& options);

/// @throws Error(kInvalidArgument) unless 0 <= rate < 1, Error(kUnsupported) naming the family if
/// the rate is not 0 and videos of the architecture are not pruned, or not by this method.
void check_video_pruning(const ModelFamily& family, std::string_view architecture,
                         const PruningRule& rule);

/// Rows of a video that remain: of EVS max(rows_per_frame, floor(rows * (1 - rate))), of VidCom2
/// max(num_frames, floor(rows * (1 - rate))).
/// @param rows of the whole video, the same number for every frame. @param num_frames temporal
/// patches.
/// Source: docs/reference/qwen_glm.md, "Pruned videos".
[[nodiscard]] std::int64_t num_retained(std::int64_t rows, std::int64_t num_frames,
                                        const PruningRule& rule);

/// Keeps the rows of a video that the method chooses, in their order; sets `video.retained`.
/// Compares the rows as they are, in the dtype of the caller. The time is added to
/// times.output_ms.
/// @param video with a grid, not pruned yet, in which grid[0] divides the rows.
/// Source: docs/reference/qwen_glm.md, "Pruned videos".
void prune_video(Embedding& video, const PruningRule& rule, ThreadPool& pool);

}  // namespace fovea
