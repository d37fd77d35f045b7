#pragma once

#include <cstdint>

#include "ops/cuda/common/lanes.cuh"
#include "ops/cuda/common/packed_heads.h"

namespace fovea::cuda {

/// A block of neighbouring query rows of one sequence.
struct QueryTile {
  int sequence;
  int sequence_begin;  ///< first row of the sequence in the batch
  int sequence_rows;
  int first;  ///< first query row of the tile, counted within the sequence; negative before it
};

__device__ inline int live_sequences(const PackedHeads& heads) {
  return heads.live_seqs == nullptr ? heads.max_seqs : min(*heads.live_seqs, heads.max_seqs);
}

/// Finds tile number `index` when every sequence is cut into tiles of `tile_rows` queries, in
/// order, counted from the start of the sequence or, if `kAligned`, of the batch. Returns false if
/// there are fewer; `index` is then reduced by their number. For a whole warp.
template <bool kAligned = false>
__device__ inline bool find_tile(const std::int32_t* cu_seqlens, int num_sequences, int tile_rows,
                                 int& index, QueryTile& tile) {
  const int lane = lane_index();
  for (int base = 0; base < num_sequences; base += kWarp) {
    const int sequence = base + lane;
    const bool exists = sequence < num_sequences;
    const int begin = exists ? cu_seqlens[sequence] : 0;
    const int rows = exists ? cu_seqlens[sequence + 1] - begin : 0;
    const int lead = kAligned ? begin % tile_rows : 0;
    const int tiles = rows == 0 ? 0 : (lead + rows + tile_rows - 1) / tile_rows;
    const int count = min(kWarp, num_sequences - base);
    const int up_to_here = sum_up_to_lane(tiles, count);
    const unsigned beyond = __ballot_sync(kAllLanes, up_to_here > index);
    if (beyond != 0) {
      const int owner = __ffs(static_cast<int>(beyond)) - 1;
      tile.sequence = base + owner;
      tile.sequence_begin = __shfl_sync(kAllLanes, begin, owner);
      tile.sequence_rows = __shfl_sync(kAllLanes, rows, owner);
      tile.first = (index - __shfl_sync(kAllLanes, up_to_here - tiles, owner)) * tile_rows -
                   (kAligned ? tile.sequence_begin % tile_rows : 0);
      return true;
    }
    index -= __shfl_sync(kAllLanes, up_to_here, count - 1);
  }
  return false;
}

}  // namespace fovea::cuda
