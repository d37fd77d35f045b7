#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "engine/row_gather.h"
#include "fovea/row_block.h"
#include "ranks/rank_call.h"

namespace fovea::ranks {

/// A call whose rows go to memory of the caller on every rank. Each item has a slot on every rank,
/// in which its rows lie when all have gathered. Rows that stay on the devices:
///
///     engine --> slots of this rank's share --gather--> slots of all shares --copies--> blocks
///
/// Rows that pass through the host are gathered piece by piece, and slots on the host are the
/// blocks themselves.
class CallToBlocks {
 public:
  /// All arguments must outlive this object.
  CallToBlocks(Engine& engine, Communicator& ranks, std::span<const MediaItem> items,
               const Destinations& to, const EncodeOptions& options);

  /// @throws as RankCall.
  std::vector<Embedding> run();

 private:
  /// Everything that the ranks have to know before they encode.
  void prepare();
  /// Whether rows stay on the devices of all ranks.
  [[nodiscard]] bool all_stay_on_devices();
  void place_slots_on_device();
  void place_slots_on_host();
  void encode_share();
  /// Makes the results, and the slots as long as what is in them.
  void take_results();
  void gather_on_device();
  void gather_on_host();

  [[nodiscard]] std::int64_t width() const { return engine_.report().width; }

  Engine& engine_;
  Communicator& ranks_;
  std::span<const MediaItem> items_;
  Destinations to_;
  RankCall call_;
  RowGather gather_;
  bool on_device_ = false;
  std::vector<RowBlock> slots_;   // of all items, each for the most rows that may come
  std::byte* memory_ = nullptr;   // of the slots of all ranks, one after the other
  std::size_t share_bytes_ = 0;   // of the slots of a rank
  std::vector<RowBytes> staged_;  // slots of the host for blocks on GPUs
  std::vector<Embedding> results_;
};

}  // namespace fovea::ranks
