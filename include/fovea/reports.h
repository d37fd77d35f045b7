#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "fovea/media.h"

namespace fovea {

/// Equal units of an item on one path of the tower. A unit is what attention and mergers see at
/// once: no row of it depends on another unit. A video is a row of temporal patches, an image that
/// is cut one of tiles or crops; what attends as a whole is one unit.
struct ItemUnits {
  std::int64_t count = 0;
  std::int64_t patches = 0;  ///< of each
  std::int64_t rows = 0;     ///< that the path makes of each

  friend bool operator==(const ItemUnits&, const ItemUnits&) = default;
};

/// What becomes of an item, by integer arithmetic alone.
struct ItemInfo {
  std::string name;  ///< its size: "640x480", or "640x480x8f" for a video
  Modality modality = Modality::kImage;
  std::int64_t source_width_px = 0;
  std::int64_t source_height_px = 0;
  std::int64_t num_frames = 1;
  std::int64_t resized_width_px = 0;
  std::int64_t resized_height_px = 0;
  std::optional<std::array<std::int64_t, 3>> grid_thw;  ///< in patches, for families with a grid
  std::int64_t patches = 0;                             ///< that enter the tower
  std::int64_t rows = 0;                                ///< that come out
  /// What it consists of, in the order of its pixels: path after path, those that it takes. Patches
  /// of all units add up to `patches`, rows to `rows`, but for rows that a family puts between them
  /// (newlines and separators of DeepSeek-OCR), those that are pruned of a video, and those that
  /// become a vector.
  std::vector<ItemUnits> units;
};

/// Size of an item to be planned.
struct ItemSize {
  std::int64_t width_px = 0;
  std::int64_t height_px = 0;
  std::int64_t num_frames = 1;           ///< more than one: a video, whatever `modality` says
  Modality modality = Modality::kImage;  ///< a video of one frame is resized as videos are
  std::string mm_processor_kwargs = {};  ///< as MediaItem has them
};

/// Consecutive units of an item on one path.
struct UnitRange {
  std::int64_t first = 0;
  std::int64_t count = 0;

  friend bool operator==(const UnitRange&, const UnitRange&) = default;
};

/// One sub-batch of a packing plan.
struct PlannedBatch {
  std::int64_t replica = 0;          ///< index of the replica that encodes it
  std::vector<std::int64_t> items;   ///< indices into the planned sizes
  std::vector<UnitRange> units;      ///< of each item, on the one path with tokens; none: all
  std::vector<std::int64_t> tokens;  ///< per path
  std::vector<std::optional<std::int64_t>>
      budgets;                       ///< per path; absent: runs eagerly; 0: path not needed
  std::vector<std::int64_t> padded;  ///< per path: rows of the replayed graph that no item uses
};

/// How the items of one call would be packed.
struct PackingPlan {
  std::vector<ItemInfo> items;                           ///< in the order of the sizes
  std::vector<std::string> paths;                        ///< names
  std::vector<std::vector<std::int64_t>> token_budgets;  ///< per path; empty: no graphs
  std::int64_t max_items_per_batch = 0;                  ///< 0: no graphs, no limit
  std::vector<std::int64_t> replica_patches;             ///< patches per replica
  std::vector<PlannedBatch> batches;
};

/// A checkpoint tensor as found or expected.
struct TensorReport {
  std::string name;
  std::string dtype;  ///< as in the file; empty if missing
  std::vector<std::int64_t> shape;
  std::string problem;  ///< what is wrong with it; empty: nothing
};

/// Activation memory of one graph; the graphs of a path share that of its largest.
struct ArenaReport {
  std::string path;
  std::int64_t token_budget = 0;
  std::size_t bytes = 0;
};

/// What a model is and needs; printed by `fovea inspect`.
struct ModelReport {
  std::string architecture;  ///< architectures[0] of config.json
  std::string family;
  std::int64_t hidden = 0;  ///< columns of the main embedding
  std::int64_t deepstack_levels = 0;
  std::int64_t width = 0;  ///< columns of a row: hidden * (1 + levels)
  bool images = true;
  bool videos = true;
  /// File that says that the checkpoint is an embedding model; empty: it is none. The vectors of
  /// such a model are made by its language model, not of the rows of its tower.
  std::string embedding_file;
  std::vector<std::pair<std::string, std::string>>
      facts;                          ///< family-specific: depth, heads, patch size...
  std::vector<TensorReport> tensors;  ///< all that the tower reads
  std::int64_t parameters = 0;        ///< elements of these tensors
  std::size_t weight_bytes = 0;       ///< loaded: as packed on the device; inspected: as stored
  std::vector<ArenaReport> arenas;    ///< by path, budgets ascending
  /// Largest relative L2 difference of an item's rows from those in float32 that rounding to
  /// bfloat16 explains; verify() allows so much.
  double bfloat16_tolerance = 2e-2;
};

}  // namespace fovea
