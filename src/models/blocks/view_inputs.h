#pragma once

#include <cstdint>
#include <vector>

#include "models/encoder_graph_model.h"
#include "ops/context.h"

namespace fovea::blocks {

/// A square view of an image, cut into patches without overlap.
struct SquareView {
  std::int64_t side_px = 0;
  std::int64_t patch_px = 0;
  std::int64_t merge = 1;   ///< patches a side of a token; those of one token are neighbouring rows
  std::int64_t planes = 1;  ///< images that make the view, which ops::patchify reads as frames:
                            ///< more than 1 where a pixel has several bytes

  [[nodiscard]] std::int64_t grid() const { return side_px / patch_px; }  ///< patches a side
  [[nodiscard]] std::int64_t patches() const { return grid() * grid(); }
  [[nodiscard]] std::int64_t plane_bytes() const { return side_px * side_px * 3; }
  [[nodiscard]] std::size_t pixel_bytes() const {
    return static_cast<std::size_t>(planes * plane_bytes());
  }
};

/// Calls visit(y, x) for every patch of a view in the order of its rows: tokens row-major, and
/// inside a token its patches row-major.
template <class Visit>
void for_each_patch(const SquareView& view, const Visit& visit) {
  for (std::int64_t top = 0; top < view.grid(); top += view.merge) {
    for (std::int64_t left = 0; left < view.grid(); left += view.merge) {
      for (std::int64_t y = top; y < top + view.merge; ++y) {
        for (std::int64_t x = left; x < left + view.merge; ++x) visit(y, x);
      }
    }
  }
}

/// What a tower over equal views reads. Every view takes the same number of rows at every stage of
/// the tower, so all live counts are multiples of the number of views.
struct ViewLayout {
  SquareView view;
  std::int64_t seq_rows = 0;               ///< rows of the attention sequence that a view makes
  std::vector<std::int64_t> stages;        ///< rows of a view at each stage that needs a live count
  std::int64_t views_per_chunk = 0;        ///< 0: all views pass through the tower together
  std::vector<std::int64_t> chunk_stages;  ///< as `stages`, of the part that runs chunk by chunk
};

struct ViewInputs {
  ConstTensorView pixels;                     ///< [bytes] u8: the views, one after the other
  ConstTensorView sources;                    ///< [views * patches, 4] i32: see ops::PatchifyArgs
  ConstTensorView cu_seqlens;                 ///< [views + 1] i32: multiples of seq_rows
  std::vector<LiveRows> live;                 ///< of each stage
  std::vector<std::vector<LiveRows>> chunks;  ///< per chunk, of each of its stages

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

}  // namespace fovea::blocks
