#pragma once

#include <cstdint>
#include <vector>

#include "fovea/tower/models/encoder_graph_model.h"
#include "fovea/tower/ops/context.h"
#include "models/common/geometry.h"

namespace fovea::common {

/// Rows of the attention sequence that a view makes: its patches, or what stands for them, and
/// class rows before or behind them.
struct ViewSequence {
  std::int64_t patches = 0;
  std::int64_t class_rows = 1;
  std::int64_t first_patch = 1;  ///< class_rows, or 0 where the class rows come last

  [[nodiscard]] std::int64_t rows() const { return patches + class_rows; }
  [[nodiscard]] std::int64_t first_class_row() const { return first_patch > 0 ? 0 : patches; }
};

/// The inputs of a tower over equal views. Every view takes the same number of rows at every stage
/// of the tower, so all live counts are multiples of the number of views.
struct ViewLayout {
  SquareView view;
  ViewSequence sequence;
  std::int64_t tokens = 0;                 ///< rows that a view gives: the unit of its path
  std::vector<std::int64_t> stages;        ///< rows of a view at each further stage that needs a
                                           ///< live count
  std::int64_t views_per_chunk = 0;        ///< 0: all views pass through the tower together
  std::vector<std::int64_t> chunk_stages;  ///< as `stages`, of the part that runs chunk by chunk
};

/// Views that pass through a part of the tower together.
struct ViewBatch {
  SquareView view;
  ViewSequence sequence;
  std::int64_t first = 0;        ///< of the views of the graph
  std::int64_t count = 0;        ///< of views, live or not
  ConstTensorView pixels;        ///< [bytes] u8: all views of the graph, one after the other
  ConstTensorView sources;       ///< [count * patches, 4] i32: see ops::PatchifyArgs
  ConstTensorView cu_seqlens;    ///< [count + 1] i32: multiples of the rows of a sequence
  LiveRows views;                ///< how many of them are live
  LiveRows patches;              ///< of the view
  LiveRows rows;                 ///< of the sequences
  std::vector<LiveRows> stages;  ///< of each further stage
};

struct ViewInputs {
  ViewBatch all;
  std::vector<ViewBatch> chunks;

  /// The buffers of a graph of `views` views, for EncoderGraphModel::inputs.
  [[nodiscard]] static std::vector<BufferDecl> declare(const ViewLayout& layout,
                                                       std::int64_t views);
  /// Writes all of them but the pixels, for EncoderGraphModel::fill_inputs.
  /// @param capacity views of the graph. @param views of the batch.
  /// @return where the pixels of the views are to be copied to, one view after the other.
  /// @throws Error(kUnavailable) if a buffer holds less, Error(kInvalidArgument) for more pixels
  /// than 32-bit offsets reach; `num_items` is for its message.
  [[nodiscard]] static std::byte* fill(const ViewLayout& layout, std::int64_t capacity,
                                       std::int64_t views, std::size_t num_items,
                                       InputWriter& writer);
  /// The buffers on the device, for a forward. @param views of the graph.
  [[nodiscard]] static ViewInputs of(const ViewLayout& layout, std::int64_t views,
                                     const NamedTensors& in);
};

}  // namespace fovea::common
