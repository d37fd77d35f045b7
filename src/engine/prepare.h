#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "core/thread_pool.h"
#include "engine/prepare/decode_budget.h"
#include "engine/prepare/frame_writer.h"
#include "engine/prepare/item_processors.h"
#include "engine/prepare/window_budget.h"
#include "engine/pruning/video_pruning.h"
#include "fovea/embedding.h"
#include "fovea/log.h"
#include "fovea/media.h"
#include "fovea/options.h"
#include "fovea/tower/models/encoder_graph_model.h"
#include "media/process/decode_processes.h"

namespace fovea {

/// An item after reading, decoding, planning and resizing, or the reason why not. The item stays
/// empty where the source is finished rows, which are checked alone.
struct PreparedMedia {
  PreparedItem item;
  UnitRange units = {};  ///< of an item that does not come as a whole: those that are here
  bool is_last = true;   ///< no more units of it will come
  std::vector<double>
      timestamps;  ///< of the temporal patches of a video, ItemProcessor::timestamps
  StageTimes times;
  std::optional<Error> error;
  bool postponed = false;   ///< the window has no room for the item, which is empty
  bool is_long = false;     ///< it would hold more than PrepareContext::most_bytes, and is empty
  bool lacks_room = false;  ///< PrepareUse::has_room has refused it: it has a plan and no pixels
};

/// What the items of an engine are prepared with; owns nothing.
struct PrepareContext {
  const EncoderGraphModel& model;
  const MediaOptions& options;
  DecodeBudget& budget;                         ///< of everything that decodes for the engine
  media::DecodeProcesses* processes = nullptr;  ///< where items are decoded; null: here
  LogSink* log = nullptr;                       ///< warned of frames that are lost
  /// A video of more pixels is not prepared as a whole, but by UnitStream. 0: any is.
  std::size_t most_bytes = 0;
  PruningRule pruning = {};              ///< of the engine, for rows that are to have room
  ItemProcessors* processors = nullptr;  ///< for items with options; null: there are none
};

/// Where the units of a long video go: PreparedMedia with these units, the last with what is known
/// at the end. Units that begin with the first take the place of all that came before.
struct UnitSink {
  std::function<void(PreparedMedia units)> take;
  std::size_t most_bytes;  ///< FrameWriter::send_units
};

/// What belongs to an item beside its media. Refers to all of it.
struct PrepareUse {
  /// Of the item in its window: without room there it is postponed before it is decoded. Null:
  /// there is room.
  WindowBudget::Place* place = nullptr;
  /// With a plan as plan_ahead made it; used unless what is decoded has another size, which a file
  /// may have by now.
  ItemAhead ahead = {};
  const UnitSink* sink = nullptr;  ///< where all units go; null: they stay in the result
  /// Whether there is room for so many rows: an item without is not decoded, and comes with its
  /// plan alone. Empty: there is.
  std::function<bool(std::int64_t rows)> has_room = {};
};

/// The size of an item as far as it can be told without decoding: by the description of pixels and
/// pixel values, and by the header of an encoded image, as stored, before it is turned upright.
/// Absent for videos in containers, for finished rows, which take part in no packing, and for
/// whatever prepare_media refuses, which says why. Reads 128 KiB of a file at most.
[[nodiscard]] std::optional<ItemPlan> plan_ahead(const EncoderGraphModel& model,
                                                 const MediaItem& media,
                                                 const MediaOptions& options,
                                                 ItemProcessors* processors = nullptr);

/// Takes one item from its source to resized bytes. An Error is returned; what the limits of
/// `context` refuse is refused before memory is taken for it. Waits for its share of the budget,
/// and then has options.limits.decode_deadline for the rest: missing that is an Error of the item.
/// @throws Error(kCancelled) or Error(kDeadline), as check_interrupt, if the thread is to end.
[[nodiscard]] PreparedMedia prepare_media(const PrepareContext& context, const MediaItem& media,
                                          const PrepareUse& use = {});

/// As prepare_media for all of `media` at once, spread over the pool.
[[nodiscard]] std::vector<PreparedMedia> prepare_all(const PrepareContext& context,
                                                     std::span<const MediaItem> media,
                                                     ThreadPool& pool);

}  // namespace fovea
