#pragma once

// Sizes of our GEMM kernels (gemm/hopper/kernel.cuh), and which blocks of x, of weights
// and of the output a thread block works on.

#include <cstdint>

#include "ops/cuda/common/lanes.cuh"
#include "ops/cuda/common/launch.cuh"
#include "ops/cuda/gemm/hopper/hopper_gemm.h"
#include "ops/cuda/ptx/ring.cuh"

namespace fovea::cuda::gemm {

using ops::Activation;

constexpr int kUnitRows = 64;         // of one instruction
constexpr int kWarpRows = 16;         // of those, one warp's
constexpr int kRowBytes = 128;        // of x and weight in a stage
constexpr int kBlockCols = 64;        // of the residual in a stage
constexpr int kVector = 8;            // bf16 in 16 bytes
constexpr int kRegisters = 65536;     // of an SM
constexpr int kFirstTurnBarrier = 1;  // one per group; 0 is __syncthreads
constexpr int kConsumersBarrier = 3;
/// Of the weights of its first tile, a block brings at most this much into L2 ahead of its turn.
constexpr int kAheadBytes = 128 << 10;

/// Distance in floats between rows of `cols` floats, so that 2 x 2 neighbours of eight rows, and
/// vectors of a row, lie in different banks.
constexpr int row_stride(int cols) {
  int stride = cols;
  while (stride % 32 != 8 && stride % 32 != 24) stride += 4;
  return stride;
}

/// How the warp groups and thread blocks of a kernel work together.
enum class Teamwork : std::uint8_t {
  kTogether,     ///< the groups of a block share a tile, each with its rows
  kAlternating,  ///< two groups take whole tiles in turn: one multiplies while the other stores
  kSplit,        ///< as kTogether, and the blocks of a cluster share the sum of a tile
};

/// The tile of a thread block: rows of each warp group, and columns.
template <int kGroupCount, int kRowsOfGroup, int kTileCols>
struct Tile {
  static constexpr int kGroups = kGroupCount;
  static constexpr int kGroupRows = kRowsOfGroup;
  static constexpr int kCols = kTileCols;
};
/// Neighbouring tiles of one cluster of blocks: those of a row share x, those of a column share
/// weights; each block brings a part of what it shares to all.
template <int kTileRows, int kTileCols>
struct Neighbours {
  static constexpr int kRows = kTileRows;
  static constexpr int kCols = kTileCols;
};

/// Sizes of a kernel. Registers hold group_rows / 64 * cols / 2 sums of a thread. With a head dim
/// the columns are queries, keys and values of heads of that size, which go where attention reads
/// them (gemm/hopper/heads.cuh).
template <Teamwork kWay, class T, int kStageCount, class N = Neighbours<1, 1>, int kHead = 0,
          GemmFormat kDtypes = GemmFormat::kBf16>
struct Plan {
  static constexpr GemmFormat kFormat = kDtypes;
  static constexpr bool kFp8 = kFormat != GemmFormat::kBf16;
  static constexpr bool kFp8Out = kFormat == GemmFormat::kFp8ToFp8;
  static constexpr int kHeadDim = kHead;
  static_assert(kHeadDim == 0 || (kWay == Teamwork::kTogether && !kFp8Out));
  static_assert(!kFp8Out || kWay != Teamwork::kSplit);
  static constexpr int kSumCols = kRowBytes / (kFp8 ? 1 : 2);  // of x and weight in a stage
  static constexpr int kGroups = T::kGroups;
  static constexpr int kGroupRows = T::kGroupRows;
  static constexpr bool kTogether = kWay == Teamwork::kTogether;
  static constexpr bool kAlternating = kWay == Teamwork::kAlternating;
  static constexpr bool kSplit = kWay == Teamwork::kSplit;
  static constexpr int kRows = kAlternating ? kGroupRows : kGroups * kGroupRows;
  static constexpr int kCols = T::kCols;
  static constexpr int kStages = kStageCount;
  static constexpr int kUnits = kGroupRows / kUnitRows;

  static constexpr int kRowsOfTiles = N::kRows;
  static constexpr int kColsOfTiles = N::kCols;
  static constexpr int kNeighbours = kRowsOfTiles * kColsOfTiles;
  /// Blocks that bring a part of what a block multiplies, itself among them.
  static constexpr int kSuppliers = kRowsOfTiles + kColsOfTiles - 1;
  static constexpr bool kIsCluster = kSplit || kNeighbours > 1;

  static constexpr int kConsumers = kGroups * kGroup;
  static constexpr int kConsumerWarps = kConsumers / kWarp;
  // With several groups the copying warp brings three idle ones along: only whole groups can give
  // registers away. All start with the same, and what some get others must have given.
  static constexpr bool kShiftsRegisters = kGroups > 1;
  static constexpr int kThreads = kConsumers + (kShiftsRegisters ? kGroup : kWarp);
  static constexpr int kConsumerRegisters = kGroups == 2 ? 240 : 160;
  static constexpr int kCopyRegisters = kGroups == 2 ? 24 : 32;
  static constexpr int kFirstRegisters = kRegisters / kThreads / 8 * 8;
  static_assert(!kShiftsRegisters ||
                kGroups * kConsumerRegisters + kCopyRegisters <= (kGroups + 1) * kFirstRegisters);
  static constexpr int kBlocksPerMultiprocessor = kGroups == 1 ? 2 : 1;

  static constexpr int kXBytes = kRows * kRowBytes;
  static constexpr int kWeightBytes = kCols * kRowBytes;
  static_assert(kRows % (8 * kColsOfTiles) == 0 && kCols % (8 * kRowsOfTiles) == 0,
                "the swizzle repeats every 8 rows");
  /// First row of a warp group in its tile.
  [[nodiscard]] static __device__ int first_row(int group) {
    return kAlternating ? 0 : group * kGroupRows;
  }
  /// First row of this warp in its tile.
  [[nodiscard]] static __device__ int first_row_of_warp() {
    const int thread = static_cast<int>(threadIdx.x);
    return first_row(thread / kGroup) + thread % kGroup / kWarp * kWarpRows;
  }
  /// Whether the residual of a tile comes through the ring: behind the last operands, 64 columns at
  /// a time, in the place of x. A stage of operands is full only once every neighbour has sent its
  /// part, and a neighbour sends only after this block has released what the stage held before. The
  /// residual comes from this block alone, so this rule would not keep the block from releasing a
  /// stage that a neighbour still reads. In clusters of one row or one column all blocks send parts
  /// to each other, and the rule holds again. Alternating groups rely on the same pace.
  static constexpr bool kResidualInStages =
      kTogether && kHeadDim == 0 && !kFp8Out && (kRowsOfTiles == 1 || kColsOfTiles == 1);
  static constexpr bool kAddsResidual = kResidualInStages || kSplit;
  static constexpr int kResidualStages = (kCols + kBlockCols - 1) / kBlockCols;
  /// Columns that a warp stores at once, a head where there are heads, and its buffers for them.
  /// Rows of 64 bytes are swizzled and those of 128 padded; others spread over the banks by
  /// themselves.
  static constexpr int kChunk = kFp8Out           ? (kCols % 64 == 0 ? 64 : kCols)
                                : kHeadDim > 0    ? kHeadDim
                                : kCols % 32 == 0 ? 32
                                : kCols % 48 == 0 ? 48
                                : kCols % 72 == 0 ? 72
                                                  : 40;
  static constexpr int kOutSize = kFp8Out ? 1 : 2;  // of an element
  static_assert(kCols % kChunk == 0 && kChunk * kOutSize % 16 == 0);
  static constexpr bool kSwizzled = kChunk * kOutSize == 64;
  static constexpr int kChunkStride = kChunk * kOutSize % 128 == 0 ? kChunk + kVector : kChunk;
  /// Whether TMA stores rows. Where no group multiplies meanwhile, it is busy with the stages of
  /// the next tile.
  static constexpr bool kBulkStores = kAlternating;
  static constexpr int kOutBuffers = kBulkStores ? 2 : 1;
  /// Where blocks share a sum: the parts of a tile from all of them; the last may have fewer rows.
  static constexpr int kTileStride = row_stride(kCols);
  static constexpr int kOutBytes =
      kSplit ? (kRows + HopperGemm::kMaxCluster) * kTileStride * static_cast<int>(sizeof(float))
             : kConsumerWarps * kOutBuffers * kWarpRows * kChunkStride * kOutSize;

  /// WGMMAs into the same registers wait for each other, some 65 cycles each; narrow ones would
  /// leave the tensor cores idle. Then a thread keeps several sums of every element.
  static constexpr int kChains = kGroups > 1 || kCols >= 128 ? 1 : kCols >= 64 ? 2 : 4;

  using Sums = float[kUnits][kCols / 8][4];
  /// Where a block of columns, counted over all that pass through the ring, is in it.
  using At = Position<kStages>;
};

template <class P>
struct Shared {
  alignas(1024) std::byte x[P::kStages][P::kXBytes];
  alignas(1024) std::byte weight[P::kStages][P::kWeightBytes];
  alignas(1024) std::byte out[P::kOutBytes];
  std::uint64_t full[P::kStages];   // the copies of a stage have landed
  std::uint64_t empty[P::kStages];  // it has been read
  std::uint64_t parts;              // the parts of a tile have arrived from all blocks
};

/// Where a thread block stands in its cluster. Neighbours differ in the tile; blocks that share the
/// sum of a tile have the same place among their neighbours.
template <class P>
struct Place {
  __device__ explicit Place(const HopperGemmWork& w)
      : rank(static_cast<int>(blockIdx.x) % (w.splits * P::kNeighbours)),
        part(rank / P::kNeighbours),
        row(rank % P::kNeighbours / P::kColsOfTiles),
        col(rank % P::kColsOfTiles) {}
  int rank;
  int part;  ///< of the sum
  int row;   ///< of tiles
  int col;

  [[nodiscard]] __device__ int rank_of(int tile_row, int tile_col) const {
    return part * P::kNeighbours + tile_row * P::kColsOfTiles + tile_col;
  }
  /// The block that has part `other` of the sum of this block's tile.
  [[nodiscard]] __device__ int rank_of_part(int other) const {
    return rank + (other - part) * P::kNeighbours;
  }
  /// The `i`-th of kSuppliers: first those of this row of tiles, then the others of the column.
  [[nodiscard]] __device__ int supplier(int i) const {
    if (i < P::kColsOfTiles) return rank_of(row, i);
    const int other = i - P::kColsOfTiles;
    return rank_of(other < row ? other : other + 1, col);
  }
  /// One bit for every block that shares x, or weights, with this one.
  [[nodiscard]] __device__ std::uint16_t blocks_of_row() const {
    return static_cast<std::uint16_t>(((1u << P::kColsOfTiles) - 1) << rank_of(row, 0));
  }
  [[nodiscard]] __device__ std::uint16_t blocks_of_col() const {
    unsigned blocks = 0;
#pragma unroll
    for (int i = 0; i < P::kRowsOfTiles; ++i) blocks |= 1u << rank_of(i, col);
    return static_cast<std::uint16_t>(blocks);
  }
};

/// The tiles of the output and who computes them: a cluster takes its neighbouring tiles of every
/// so many-th. Columns run fastest: blocks at work share rows of x, and all weights fit the L2
/// cache.
template <class P>
class Tiles {
 public:
  __device__ Tiles(const HopperGemmWork& w, const Place<P>& place)
      : place_row_(place.row),
        place_col_(place.col),
        num_cols_((w.out_features + P::kCols * P::kColsOfTiles - 1) / (P::kCols * P::kColsOfTiles)),
        first_(static_cast<int>(blockIdx.x) / (w.splits * P::kNeighbours)),
        step_(static_cast<int>(gridDim.x) / (w.splits * P::kNeighbours)) {}

  [[nodiscard]] __device__ int first() const { return first_; }
  [[nodiscard]] __device__ int step() const { return step_; }
  [[nodiscard]] __device__ int count(int live_rows) const {
    constexpr int kRows = P::kRows * P::kRowsOfTiles;
    return (live_rows + kRows - 1) / kRows * num_cols_;
  }
  [[nodiscard]] __device__ int row(int tile) const {
    return (tile / num_cols_ * P::kRowsOfTiles + place_row_) * P::kRows;
  }
  [[nodiscard]] __device__ int col(int tile) const {
    return (tile % num_cols_ * P::kColsOfTiles + place_col_) * P::kCols;
  }
  [[nodiscard]] __device__ bool in_first_row(int tile) const { return tile < num_cols_; }

 private:
  int place_row_;
  int place_col_;
  int num_cols_;
  int first_;
  int step_;
};

/// The blocks of 128 bytes of rows of x that one thread block sums.
struct Slice {
  __device__ Slice(const HopperGemmWork& w, int part)
      : first(part * w.sum_blocks / w.splits),
        count((part + 1) * w.sum_blocks / w.splits - first) {}
  int first;
  int count;
};

__device__ inline int live_rows_of(const HopperGemmWork& w) {
  return static_cast<int>(live_rows(w.live, w.rows));
}

}  // namespace fovea::cuda::gemm
