#pragma once

// Sizes of our GEMM kernels (gemm/hopper/kernel.cuh), and which blocks of x, of weights and of the
// output a CTA works on.

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
/// Of the weights of its first tile, a CTA prefetches at most this much into L2 ahead of its turn.
constexpr int kAheadBytes = 128 << 10;

/// Distance in floats between rows of `cols` floats, so that 2 x 2 neighbours of eight rows, and
/// vectors of a row, lie in different banks.
constexpr int row_stride(int cols) {
  int stride = cols;
  while (stride % 32 != 8 && stride % 32 != 24) stride += 4;
  return stride;
}

/// How the warp groups of a CTA, and CTAs, work on tiles; CUTLASS has the first two by these names.
enum class Schedule : std::uint8_t {
  kCooperative,  ///< the groups of a CTA share a tile, each with its rows
  kPingpong,     ///< two groups take whole tiles in turn: one multiplies while the other stores
  kSplitK,       ///< as kCooperative, and the CTAs of a cluster share the sum of a tile
};

/// The tile of a CTA: rows of each warp group, and columns.
template <int kGroupCount, int kRowsOfGroup, int kTileCols>
struct Tile {
  static constexpr int kGroups = kGroupCount;
  static constexpr int kGroupRows = kRowsOfGroup;
  static constexpr int kCols = kTileCols;
};
/// Neighbouring tiles of one cluster of CTAs: those of a row share x, those of a column share
/// weights; each CTA loads a part of what it shares for all.
template <int kTileRows, int kTileCols>
struct ClusterTiles {
  static constexpr int kRows = kTileRows;
  static constexpr int kCols = kTileCols;
};

/// Sizes of a kernel. Registers hold group_rows / 64 * cols / 2 sums of a thread. With a head dim
/// the columns are queries, keys and values of heads of that size, which go where attention reads
/// them (gemm/hopper/heads.cuh).
template <Schedule kWay, class T, int kStageCount, class N = ClusterTiles<1, 1>, int kHead = 0,
          GemmFormat kDtypes = GemmFormat::kBf16>
struct Plan {
  static constexpr GemmFormat kFormat = kDtypes;
  static constexpr bool kFp8 = kFormat != GemmFormat::kBf16;
  static constexpr bool kFp8Out = kFormat == GemmFormat::kFp8ToFp8;
  static constexpr int kHeadDim = kHead;
  static_assert(kHeadDim == 0 || (kWay == Schedule::kCooperative && !kFp8Out));
  static_assert(!kFp8Out || kWay != Schedule::kSplitK);
  static constexpr int kSumCols = kRowBytes / (kFp8 ? 1 : 2);  // of x and weight in a stage
  static constexpr int kGroups = T::kGroups;
  static constexpr int kGroupRows = T::kGroupRows;
  static constexpr bool kCooperative = kWay == Schedule::kCooperative;
  static constexpr bool kPingpong = kWay == Schedule::kPingpong;
  static constexpr bool kSplitK = kWay == Schedule::kSplitK;
  static constexpr int kRows = kPingpong ? kGroupRows : kGroups * kGroupRows;
  static constexpr int kCols = T::kCols;
  static constexpr int kStages = kStageCount;
  static constexpr int kUnits = kGroupRows / kUnitRows;

  static constexpr int kRowsOfTiles = N::kRows;
  static constexpr int kColsOfTiles = N::kCols;
  static constexpr int kPeers = kRowsOfTiles * kColsOfTiles;
  /// Peer CTAs that load a part of what a CTA multiplies, itself among them.
  static constexpr int kProducers = kRowsOfTiles + kColsOfTiles - 1;
  static constexpr bool kIsCluster = kSplitK || kPeers > 1;

  static constexpr int kConsumers = kGroups * kGroup;
  static constexpr int kConsumerWarps = kConsumers / kWarp;
  // With several groups the copying warp has three idle ones beside it: only whole groups can give
  // registers away. All start with the same, and what some get others must have given.
  static constexpr bool kShiftsRegisters = kGroups > 1;
  static constexpr int kThreads = kConsumers + (kShiftsRegisters ? kGroup : kWarp);
  static constexpr int kConsumerRegisters = kGroups == 2 ? 240 : 160;
  static constexpr int kCopyRegisters = kGroups == 2 ? 24 : 32;
  static constexpr int kFirstRegisters = kRegisters / kThreads / 8 * 8;
  static_assert(!kShiftsRegisters ||
                kGroups * kConsumerRegisters + kCopyRegisters <= (kGroups + 1) * kFirstRegisters);
  static constexpr int kCtasPerSm = kGroups == 1 ? 2 : 1;

  static constexpr int kXBytes = kRows * kRowBytes;
  static constexpr int kWeightBytes = kCols * kRowBytes;
  static_assert(kRows % (8 * kColsOfTiles) == 0 && kCols % (8 * kRowsOfTiles) == 0,
                "the swizzle repeats every 8 rows");
  /// First row of a warp group in its tile.
  [[nodiscard]] static __device__ int first_row(int group) {
    return kPingpong ? 0 : group * kGroupRows;
  }
  /// First row of this warp in its tile.
  [[nodiscard]] static __device__ int first_row_of_warp() {
    const int thread = static_cast<int>(threadIdx.x);
    return first_row(thread / kGroup) + thread % kGroup / kWarp * kWarpRows;
  }
  /// Whether the residual of a tile comes through the ring: behind the last operands, 64 columns at
  /// a time, in the place of x. A stage of operands is full only once every peer has sent its
  /// part, and a peer sends only after this CTA has released what the stage held before. The
  /// residual comes from this CTA alone, so this rule would not keep the CTA from releasing a
  /// stage that a peer still reads. In clusters of one row or one column all CTAs send parts
  /// to each other, and the rule holds again. Alternating groups rely on the same pace.
  static constexpr bool kResidualInStages =
      kCooperative && kHeadDim == 0 && !kFp8Out && (kRowsOfTiles == 1 || kColsOfTiles == 1);
  static constexpr bool kAddsResidual = kResidualInStages || kSplitK;
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
  static constexpr bool kBulkStores = kPingpong;
  static constexpr int kOutBuffers = kBulkStores ? 2 : 1;
  /// Where CTAs share a sum: the parts of a tile from all of them; the last may have fewer rows.
  static constexpr int kTileStride = row_stride(kCols);
  static constexpr int kOutBytes =
      kSplitK ? (kRows + HopperGemm::kMaxCluster) * kTileStride * static_cast<int>(sizeof(float))
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
  std::uint64_t parts;              // the parts of a tile have arrived from all CTAs
};

/// Where a CTA stands in its cluster. Peers of a slice differ in the tile; CTAs that share the sum
/// of a tile differ in the slice.
template <class P>
struct CtaInCluster {
  __device__ explicit CtaInCluster(const HopperGemmWork& w)
      : rank(static_cast<int>(blockIdx.x) % (w.splits * P::kPeers)),
        slice(rank / P::kPeers),
        row(rank % P::kPeers / P::kColsOfTiles),
        col(rank % P::kColsOfTiles) {}
  int rank;
  int slice;  ///< of the sum
  int row;    ///< of tiles
  int col;

  [[nodiscard]] __device__ int rank_of(int tile_row, int tile_col) const {
    return slice * P::kPeers + tile_row * P::kColsOfTiles + tile_col;
  }
  /// The CTA that has slice `other` of the sum of this CTA's tile.
  [[nodiscard]] __device__ int rank_of_slice(int other) const {
    return rank + (other - slice) * P::kPeers;
  }
  /// The `i`-th of kProducers: first those of this row of tiles, then the others of the column.
  [[nodiscard]] __device__ int producer(int i) const {
    if (i < P::kColsOfTiles) return rank_of(row, i);
    const int other = i - P::kColsOfTiles;
    return rank_of(other < row ? other : other + 1, col);
  }
  /// One bit for every CTA that shares x, or weights, with this one.
  [[nodiscard]] __device__ std::uint16_t ctas_of_row() const {
    return static_cast<std::uint16_t>(((1u << P::kColsOfTiles) - 1) << rank_of(row, 0));
  }
  [[nodiscard]] __device__ std::uint16_t ctas_of_col() const {
    unsigned ctas = 0;
#pragma unroll
    for (int i = 0; i < P::kRowsOfTiles; ++i) ctas |= 1u << rank_of(i, col);
    return static_cast<std::uint16_t>(ctas);
  }
};

/// The tiles of the output and who computes them: a cluster takes its neighbouring tiles of every
/// so many-th. Columns run fastest: CTAs at work share rows of x, and all weights fit the L2
/// cache.
template <class P>
class Tiles {
 public:
  __device__ Tiles(const HopperGemmWork& w, const CtaInCluster<P>& cta)
      : row_in_cluster_(cta.row),
        col_in_cluster_(cta.col),
        num_cols_((w.out_features + P::kCols * P::kColsOfTiles - 1) / (P::kCols * P::kColsOfTiles)),
        first_(static_cast<int>(blockIdx.x) / (w.splits * P::kPeers)),
        step_(static_cast<int>(gridDim.x) / (w.splits * P::kPeers)) {}

  [[nodiscard]] __device__ int first() const { return first_; }
  [[nodiscard]] __device__ int step() const { return step_; }
  [[nodiscard]] __device__ int count(int live_rows) const {
    constexpr int kRows = P::kRows * P::kRowsOfTiles;
    return (live_rows + kRows - 1) / kRows * num_cols_;
  }
  [[nodiscard]] __device__ int row(int tile) const {
    return (tile / num_cols_ * P::kRowsOfTiles + row_in_cluster_) * P::kRows;
  }
  [[nodiscard]] __device__ int col(int tile) const {
    return (tile % num_cols_ * P::kColsOfTiles + col_in_cluster_) * P::kCols;
  }
  [[nodiscard]] __device__ bool in_first_row(int tile) const { return tile < num_cols_; }

 private:
  int row_in_cluster_;
  int col_in_cluster_;
  int num_cols_;
  int first_;
  int step_;
};

/// The blocks of 128 bytes of rows of x that one CTA sums.
struct SplitKSlice {
  __device__ SplitKSlice(const HopperGemmWork& w, int slice)
      : first(slice * w.sum_blocks / w.splits),
        count((slice + 1) * w.sum_blocks / w.splits - first) {}
  int first;
  int count;
};

__device__ inline int live_rows_of(const HopperGemmWork& w) {
  return static_cast<int>(live_rows(w.live, w.rows));
}

}  // namespace fovea::cuda::gemm
