#pragma once

#include <cstdint>
#include <vector>

#include "fovea/tower/models/encoder_graph_model.h"

namespace fovea {

/// What a graph is captured for.
struct GraphKey {
  PathId path = 0;
  std::int64_t budget = 0;

  friend bool operator==(const GraphKey&, const GraphKey&) noexcept = default;
};

/// The sizes of the graphs, resolved.
struct GraphConfig {
  std::vector<std::int64_t> token_budgets;  ///< ascending
  std::int64_t max_items = 0;               ///< most items in one replay
  /// Most attention sequences in a replay with a video, whose images count one each; 0: no video.
  std::int64_t max_frames = 0;
  std::int64_t max_seqs = 0;  ///< most attention sequences in any replay: what graphs have room for
  std::vector<std::vector<std::int64_t>> path_budgets;  ///< ascending; 0 in front: may be absent
};

}  // namespace fovea
