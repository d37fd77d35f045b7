#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "core/thread_pool.h"
#include "fovea/embedding.h"
#include "fovea/media.h"
#include "fovea/options.h"
#include "models/encoder_graph_model.h"

namespace fovea {

/// An item after reading, decoding, planning and resizing, or the reason why not. The item stays
/// empty where the source is finished rows, which are checked alone.
struct PreparedMedia {
  PreparedItem item;
  StageTimes times;
  std::optional<Error> error;
};

/// How many of `total` items, from `begin` on, travel together: enough to pack well, few enough to
/// bound memory. On a GPU, where the tower runs while the next window is prepared and the last one
/// is handed over, a long call begins with a small window, so that there is soon something to
/// overlap with.
[[nodiscard]] std::size_t window_items(bool on_host, std::size_t num_replicas, std::size_t begin,
                                       std::size_t total);

/// Takes one item from its source to resized bytes. Never throws an Error: it is returned.
[[nodiscard]] PreparedMedia prepare_media(const EncoderGraphModel& model, const MediaItem& media,
                                          const MediaOptions& options);

/// As prepare_media for many items at once, spread over the pool, in the order of `media`.
[[nodiscard]] std::vector<PreparedMedia> prepare_all(const EncoderGraphModel& model,
                                                     std::span<const MediaItem> media,
                                                     const MediaOptions& options, ThreadPool& pool);

}  // namespace fovea
