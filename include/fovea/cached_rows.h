#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "fovea/encoder_cache.h"
#include "fovea/export.h"
#include "fovea/options.h"
#include "fovea/placeholder.h"

namespace fovea {

/// Rows one after the other, in host memory or, for Engine::merge_rows(), where its stream finds
/// them; owns nothing.
struct RowsView {
  const std::byte* data = nullptr;
  std::int64_t rows = 0;
  std::int64_t width = 0;  ///< elements of a row: hidden * (1 + levels)
  RowDType dtype = RowDType::kFloat32;
};

/// A window of a request, as part of a batch.
struct RequestWindow {
  const CacheRequest* request = nullptr;
  IndexRange window;                ///< prompt positions
  std::int64_t first_position = 0;  ///< of the window, in the batch
};

/// The rows of an item by its key; absent where nobody has them. What it throws leaves
/// gather_rows() as it is.
using RowSource = std::function<std::optional<RowsView>(const std::string& key)>;

/// What a batch reads of the cache.
struct GatheredRows {
  std::vector<RowsView> rows;  ///< in the order of their positions; views of what the source has
  std::vector<bool>
      is_embed;  ///< of the positions of the batch: as many are true as there are rows
};

/// Finds the rows that the windows of a batch need. Looks at no row: they may lie on a GPU.
/// @param num_positions of the batch.
/// @param look_ahead tokens that a draft model reads behind each window. Rows that only they need
/// may be missing.
/// @throws Error(kNotFound) for the first key that the source does not have,
/// Error(kInvalidArgument) if it has another number of rows for it, a window leaves the batch, or
/// there is no source.
/// Source: vLLM, `EncoderRunner.gather_mm_embeddings`.
[[nodiscard]] FOVEA_API GatheredRows gather_rows(std::span<const RequestWindow> windows,
                                                 std::int64_t num_positions,
                                                 const RowSource& source,
                                                 std::int64_t look_ahead = 0);

/// Embeddings of a batch, [positions, hidden], written in place. Where they lie: as RowsView.
struct EmbeddingsView {
  std::byte* data = nullptr;
  std::int64_t positions = 0;
  std::int64_t hidden = 0;
  RowDType dtype = RowDType::kFloat32;
  /// Deepstack levels, [levels, positions, hidden], or null if rows have none. Level k is added to
  /// the hidden states behind decoder layer k.
  std::byte* deepstack = nullptr;
  std::int64_t levels = 0;
};

/// Writes gathered rows over the text embeddings of their positions, converted to the dtype of
/// `target`: the first `hidden` elements of a row there, the others to the deepstack levels, which
/// are zero elsewhere.
/// @throws Error(kInvalidArgument) if the numbers of rows and positions, or the widths, do not
/// fit, or a size is below 0; nothing is written then. Source: vLLM,
/// `_merge_multimodal_embeddings`. In host memory; Engine::merge_rows() does the same on a GPU.
FOVEA_API void merge_rows(const GatheredRows& gathered, const EmbeddingsView& target);

/// Rows at the positions of their placeholder, [length, width], zeros between them: the form in
/// which some consumers expect them.
/// @param out length * width elements of the dtype of `rows`, no overlap.
/// @throws Error(kInvalidArgument) for another number of rows or bytes.
FOVEA_API void scatter_rows(const RowsView& rows, const PlaceholderRange& placeholder,
                            std::span<std::byte> out);
/// The inverse: takes the rows out of [length, width].
/// @param out num_embeds * width elements of the dtype of `scattered`, no overlap.
/// @throws Error(kInvalidArgument) for another number of rows or bytes.
FOVEA_API void compact_rows(const RowsView& scattered, const PlaceholderRange& placeholder,
                            std::span<std::byte> out);

}  // namespace fovea
