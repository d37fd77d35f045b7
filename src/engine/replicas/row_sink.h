#pragma once

#include <optional>

#include "fovea/embedding.h"
#include "fovea/row_block.h"
#include "rows/row_cache.h"

namespace fovea {

/// Where the rows of an item go: into the data of its result, or into a block of the caller, which
/// has room for them. Refers to both.
struct RowSink {
  RowSink(Embedding* embedding) : result(embedding) {}  // NOLINT: a result is a sink
  RowSink(Embedding* embedding, const RowBlock* block, RowDType row_dtype)
      : result(embedding), to(block), dtype(row_dtype) {}

  [[nodiscard]] bool is_on_gpu() const noexcept {
    return to != nullptr && to->device != RowBlock::kHost;
  }

  Embedding* result;
  const RowBlock* to = nullptr;        ///< null: result->data
  std::optional<RowDType> dtype = {};  ///< absent: that of the call
  RowCache::Claim* keep = nullptr;  ///< also stores the rows, as the tower left them; may be null
};

}  // namespace fovea
