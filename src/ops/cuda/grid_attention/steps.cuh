#pragma once

#include <cuda_bf16.h>

#include <cstddef>
#include <cstdint>

#include "ops/cuda/grid_attention/grid_attention.h"
#include "ops/cuda/ptx/ptx.cuh"
#include "ops/cuda/ptx/wgmma.cuh"

// The layout of keys and values of whole images in the workspace of the Hopper kernel for grid
// attention, and then in shared memory: one piece of memory per step, in the order in which WGMMA
// reads it.
namespace fovea::cuda {

inline constexpr int kGridDim = 64;                  ///< of a head
inline constexpr int kGridDimBlocks = kGridDim / 8;  ///< of 16 bytes per row

/// Sizes of the kernels for images of `kColumns` columns.
template <int kColumns>
struct GridPlan {
  static constexpr int kWidth = kColumns;
  static constexpr int kRows = kWidth <= 40 ? 2 : 1;  // of keys in a step
  static constexpr int kKeys = kWidth * kRows;
  static constexpr int kColumnBlocks = kWidth / 8;
  static constexpr int kStages = kWidth <= 64 ? 6 : 4;  // as many as shared memory holds
  using Scores = float[kKeys / 8][4];
  using Weights = std::uint32_t[kKeys / 16][4];  // bf16, the operand of the second product
  using Columns = float[kColumnBlocks][4];       // initial values of the scores
  using Out = float[kGridDimBlocks + 1][4];      // the last block: sums of weights
};

/// `kCount` rows of `kBlocks` times 8 numbers as WGMMA reads them: 8 x 8 blocks of 128 contiguous
/// bytes, below each other.
template <int kCount, int kBlocks>
struct OperandRows {
  static constexpr int kBlockStride = kCount * 16;
  static constexpr int kBlockBytes = 128;
  alignas(16) std::byte memory[kBlocks * kBlockStride];

  [[nodiscard]] __device__ std::byte* piece(int row, int block) {
    return memory + block * kBlockStride + row * 16;
  }
  /// Operand of step `step`, 16 numbers, of a sum along the rows: q and k of q k^T.
  [[nodiscard]] __device__ std::uint64_t along_rows(int step) const {
    return ptx::advance_operand(
        ptx::operand_descriptor(ptx::shared_address(memory), kBlockStride, kBlockBytes),
        step * 2 * kBlockStride);
  }
  /// Operand of step `step`, 16 rows, of a sum across the rows: v of p v.
  [[nodiscard]] __device__ std::uint64_t across_rows(int step) const {
    return ptx::advance_operand(
        ptx::operand_descriptor(ptx::shared_address(memory), kBlockBytes, kBlockStride),
        step * 2 * kBlockBytes);
  }
};

/// Keys and values of one step. The values have one more column, of ones, with zeros behind.
template <class P>
struct GridStep {
  OperandRows<P::kKeys, kGridDimBlocks> keys;
  OperandRows<P::kKeys, kGridDimBlocks + 1> values;
};

/// Part 0 (q), 1 (k) or 2 (v) of a row's head.
__device__ inline const __nv_bfloat16* grid_row(const GridWork& w, int row, int part, int head) {
  return reinterpret_cast<const __nv_bfloat16*>(w.qkv) +
         ((std::int64_t{row} * 3 + part) * w.num_heads + head) * kGridDim;
}

/// The first packed step of a head of an image.
template <class P>
__device__ inline GridStep<P>* grid_steps(const GridWork& w, int image, int head) {
  return reinterpret_cast<GridStep<P>*>(w.workspace) +
         (std::int64_t{image} * w.num_heads + head) * (w.height / P::kRows);
}

/// Calls body(GridPlan<width>{}) if there is such a plan, and returns whether there is.
template <class F>
bool with_grid_plan(int width, const F& body) {
  switch (width) {
    case 32: body(GridPlan<32>{}); return true;
    case 40: body(GridPlan<40>{}); return true;
    case 64: body(GridPlan<64>{}); return true;
    case 80: body(GridPlan<80>{}); return true;
    default: return false;
  }
}

/// Packs the keys and values of all live images into w.workspace.
void launch_grid_packing(CudaStream& stream, const GridWork& w);

}  // namespace fovea::cuda
