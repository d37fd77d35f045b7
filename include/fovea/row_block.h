#pragma once

#include <cstdint>
#include <span>

#include "fovea/options.h"

namespace fovea {

/// Rows in memory of the caller, on the host or on a GPU: a destination of Engine::encode(), or
/// rows that are there already (precomputed_rows()). Elements of a row lie one after the other;
/// what lies between rows is neither read nor written. Owns nothing.
struct RowBlock {
  static constexpr int kHost = -1;

  void* data = nullptr;  ///< a multiple of the element size, as is the stride
  int device = kHost;    ///< kHost, or the number of a GPU as the driver counts
  RowDType dtype = RowDType::kFloat32;
  std::int64_t row_stride_bytes = 0;  ///< from row to row; 0: rows lie one after the other
  std::int64_t rows = 0;              ///< that there are; of a destination, that there is room for
};

/// A queue of the caller on a GPU, with which encode() orders its work. Owns nothing.
struct CallerStream {
  static constexpr int kNone = -1;

  int device = kNone;      ///< the GPU of the queue; kNone: there is no queue
  void* handle = nullptr;  ///< its cudaStream_t; null is the default stream of the GPU
};

/// Where a call wants its rows: a block for each item, and the queue with which those on GPUs are
/// ordered. Owns nothing.
struct Destinations {
  std::span<const RowBlock> blocks;
  CallerStream stream = {};
};

}  // namespace fovea
