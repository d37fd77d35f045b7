#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "core/spares.h"
#include "engine/item_view.h"
#include "engine/replicas/load_balance.h"
#include "fovea/engine.h"
#include "rows/batch_memory.h"
#include "rows/row_mover.h"

namespace fovea {

/// What a call of several ranks needs of this rank's engine besides encode(): the checks of its
/// destinations, memory on a device in which the rows of all ranks lie side by side, and copies
/// from there. Not thread-safe.
class RowGather {
 public:
  /// @param to what encode_on_ranks was called with. Engine and memory must outlive this object.
  RowGather(Engine& engine, const Destinations& to);
  RowGather(const RowGather&) = delete;
  RowGather& operator=(const RowGather&) = delete;
  ~RowGather();

  /// Engine::plan_items for items that stay where they are. @throws as that.
  [[nodiscard]] static std::vector<PlannedItem> plan(Engine& engine,
                                                     std::span<const MediaItem> items,
                                                     const CallBounds& bounds);
  /// Which rank encodes what.
  struct Shares {
    std::vector<ItemPiece> pieces;  ///< in the order of the items and of their units
    Assignment assignment;          ///< of the pieces
  };
  /// Spreads items over ranks. With packing by units those that would keep one rank busy while
  /// others have nothing to do are shared (cut_items), unless whole items come out as even. Pruned
  /// videos and what has more rows than its destination stay whole. An item whose size no header
  /// tells counts as the largest of the others.
  /// @param items of plan(). @param to destinations of the items; none: rows go to results.
  [[nodiscard]] static Shares share(Engine& engine, std::span<const PlannedItem> items,
                                    std::span<const RowBlock> to, std::size_t num_ranks);
  /// Engine::encode for some items, and shares of items. @param to none: rows go to the results.
  [[nodiscard]] static std::vector<Embedding> encode(Engine& engine, ItemView items,
                                                     const Destinations& to,
                                                     const EncodeOptions& options);

  /// @throws Error(kInvalidArgument) as Engine::encode for its destinations.
  void check(std::span<const MediaItem> items) const;
  /// Whether the engine, all destinations and the stream are on the device of this number
  /// (RowBlock::kHost or a GPU), so that rows need not leave it.
  [[nodiscard]] bool stays_on(int device) const;

  /// Memory of `bytes` on a device that all stays on, which nothing uses any more for what
  /// stream() orders. Call it once.
  /// @throws Error(kOutOfMemory), Error(kDevice).
  [[nodiscard]] std::byte* reserve(int device, std::size_t bytes);
  /// The stream with which encode() and the gather have to be ordered: that of the call, or the
  /// default stream of the GPU if it has none. After reserve().
  [[nodiscard]] const CallerStream& stream() const noexcept { return stream_; }

  /// Copies rows to blocks, behind what the stream holds. They are there when this returns, or, on
  /// GPUs with a stream, for what the caller puts on it from now on.
  /// @param from of the dtype of the block in the same place of `blocks`, with no more rows.
  /// @param blocks in the destinations. @param results for what is known of the rows.
  void copy(std::span<const RowBlock> from, std::span<const RowBlock> blocks,
            std::span<Embedding> results);

 private:
  /// What the stream holds uses the memory, and nothing after it.
  void end_use();

  Engine& engine_;
  Destinations to_;
  CallerStream stream_;
  RowMover mover_;
  Spares<BatchMemory>::Loan memory_;
  Device* device_ = nullptr;  // of the memory, while it is used
};

}  // namespace fovea
