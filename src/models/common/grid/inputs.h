#pragma once

#include <functional>
#include <span>
#include <vector>

#include "fovea/tower/models/encoder_graph_model.h"
#include "fovea/tower/ops/context.h"
#include "models/common/geometry.h"
#include "models/common/grid/smart_resize.h"
#include "models/common/rope.h"

namespace fovea::common {

/// The patch rows of a batch in host memory, [patches, 4] each, as in GridInputs.
struct PatchTables {
  std::span<std::int32_t> positions;
  std::span<std::int32_t> sources;
};

/// Grids of one size whose pixels lie one after the other, in attention sequences of one length:
/// units of an item, or a view of one.
struct GridRun {
  ItemPlan plan;  ///< of one grid
  std::span<const std::uint8_t> pixels;
  std::int64_t patches = 0;  ///< of all of them
  std::int64_t seqs = 1;
  std::int64_t tokens = 0;  ///< that the tower makes of them; 0: one of every merge_area patches
  /// Patches of the grid that are those of other members of a team, in front of these; and all that
  /// the grid has.
  std::int64_t first_patch = 0;
  std::int64_t all_patches = 0;  ///< 0: there is no team
};

/// The runs of parts, in the order of their rows: one of every part, or, where frames have patches
/// of their own, one of every unit, since the last of an item may have fewer frames.
[[nodiscard]] std::vector<GridRun> runs_of(const GridGeometry& geometry,
                                           std::span<const ItemPart> parts);

/// The rows of patches that a graph has room for.
[[nodiscard]] std::int64_t patch_capacity(const GridGeometry& geometry,
                                          const GraphCapacity& capacity);

/// The plan of a view that an item is made of, as far as its patches need one.
[[nodiscard]] ItemPlan plan_view(const GridGeometry& geometry, Size2d size);

/// The views of a unit of an item, in the order of their pixels and rows. Plans of plan_view.
using ViewsOf = std::function<std::vector<ItemPlan>(const ItemPlan& plan)>;

/// The runs of items whose units are several views each, every view an attention sequence.
[[nodiscard]] std::vector<GridRun> runs_of(std::span<const ItemPart> parts,
                                           const ViewsOf& views_of);

/// The inputs of a tower over grids of patches: rows frame by frame in merge-block order, one
/// attention sequence per temporal patch of an item, or per frame of it.
struct GridInputs {
  ConstTensorView pixels;   ///< [bytes] u8, RGB of all parts
  ConstTensorView sources;  ///< [patches, 4] i32: byte offset; strides of rows, frames and channels
  ConstTensorView positions;   ///< [patches, 4] i32: y, x, grid height, grid width
  ConstTensorView cu_seqlens;  ///< [sequences + 1] i32
  LiveRows patches;
  LiveRows tokens;
  LiveRows seqs;

  /// The buffers of a graph of `capacity`, for EncoderGraphModel::inputs.
  [[nodiscard]] static std::vector<BufferDecl> declare(const GridGeometry& geometry,
                                                       const GraphCapacity& capacity);
  /// Writes all of them, for EncoderGraphModel::fill_inputs.
  /// @throws Error(kUnavailable) if a buffer holds less, Error(kInvalidArgument) for more pixels
  /// than 32-bit offsets reach.
  /// @return the patch rows that were written, for a family that puts them in another order.
  static PatchTables fill(const GridGeometry& geometry, std::span<const ItemPart> parts,
                          InputWriter& writer);
  /// The same where an item has grids of several sizes. @param runs in the order of their rows.
  static PatchTables fill(const GridGeometry& geometry, std::span<const GridRun> runs,
                          InputWriter& writer);
  /// The buffers on the device, for a forward.
  [[nodiscard]] static GridInputs of(const NamedTensors& in);
};

/// Writes the patch rows of consecutive temporal patches of an item in merge-block order, so that
/// merge_area consecutive rows make one token. Frames that have patches of their own follow each
/// other.
/// @param pixel_offset byte at which their pixels start in the pixels of the batch.
/// @param pixel_bytes of them, which say how many frames there are: an odd last one is repeated.
/// @param positions, sources [patches, 4], as in GridInputs. @param first_patch rows that are left
/// out in front; behind, as many are left out as there is no room for.
/// Source: docs/reference/qwen_glm.md, "Patch rows".
void write_patch_rows(const GridGeometry& geometry, const ItemPlan& plan, std::int64_t pixel_offset,
                      std::size_t pixel_bytes, std::span<std::int32_t> positions,
                      std::span<std::int32_t> sources, std::int64_t first_patch = 0);

// The layers before the blocks of a tower over grids. As in layers.h, functions submit to
// ctx.stream, return at once and are safe to capture.

/// x = proj(normalise(pixels)), [patches, features].
void embed_patches(ExecContext& ctx, const GridGeometry& geometry, const PatchEmbedding& embedding,
                   const GridInputs& in, TensorView x);

/// The `num_rows` rows that blocks work on, with the angles of their positions, which are taken
/// from ctx.arena in the scope of the caller.
/// @param inv_freq [head_dim / 2] f32: see ops::RopeAnglesArgs.
[[nodiscard]] AttendedRows rotated_rows(ExecContext& ctx, const GridInputs& in,
                                        const Tensor& inv_freq, std::int64_t num_rows);

}  // namespace fovea::common
