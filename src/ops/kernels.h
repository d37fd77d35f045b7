#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "fovea/tower/device/device.h"
#include "fovea/tower/ops/activate.h"
#include "fovea/tower/ops/attention.h"
#include "fovea/tower/ops/blocks.h"
#include "fovea/tower/ops/cross_attention.h"
#include "fovea/tower/ops/grid.h"
#include "fovea/tower/ops/linear.h"
#include "fovea/tower/ops/norm.h"
#include "fovea/tower/ops/patch.h"
#include "fovea/tower/ops/projected_attention.h"
#include "fovea/tower/ops/rows.h"

namespace fovea {

/// The functions that a backend must compute, one per op. Arguments have been checked by the op
/// functions in ops/*.h, whose comments are the contract; nothing here is called for empty inputs.
/// Every body submits to the stream of the submission, takes scratch memory from its arena alone,
/// and is safe to capture. Thread-safe, but for kernels that count (cost_kernels.h). No result
/// depends on earlier calls, except through measurements of what is fastest.
class Kernels {
 public:
  virtual ~Kernels() = default;

  [[nodiscard]] virtual ops::PackedLinear pack_linear(Device& device, ConstTensorView weight,
                                                      ConstTensorView bias,
                                                      ops::WeightFormat format) const = 0;
  virtual void linear(const Submission& submission, const ops::LinearArgs& args) const = 0;
  /// Bytes that linear() takes from the arena, and projected_attention() and mlp() for each of
  /// their GEMMs; what pointers refer to is not read. For those who size arenas.
  [[nodiscard]] virtual std::size_t linear_workspace(const ops::LinearArgs& args) const = 0;
  virtual void mlp(const Submission& submission, const ops::MlpArgs& args) const = 0;
  virtual void layer_norm(const Submission& submission, const ops::LayerNormArgs& args) const = 0;
  virtual void rms_norm(const Submission& submission, const ops::RmsNormArgs& args) const = 0;
  /// out[r, c] = x[r, c] / scale[r], rounded to E4M3, with scale[r] = max |x[r, :]| / 448, or 1 for
  /// a row of zeros. @param out of ops::quantized_tensor(), of the shape of x, which is of the
  /// activation dtype. A backend without weights of E4M3 has no use for it.
  virtual void quantize_rows(const Submission& submission, ConstTensorView x, LiveRows rows,
                             TensorView out) const = 0;
  virtual void activate(const Submission& submission, const ops::ActivateArgs& args) const = 0;
  virtual void gated(const Submission& submission, const ops::GatedArgs& args) const = 0;
  virtual void clamp(const Submission& submission, const ops::ClampArgs& args) const = 0;
  virtual void rope_angles(const Submission& submission, const ops::RopeAnglesArgs& args) const = 0;
  virtual void attention(const Submission& submission, const ops::AttentionArgs& args) const = 0;
  /// Bytes that attention() takes from the arena for these shapes; what pointers refer to is not
  /// read. For those who size arenas.
  [[nodiscard]] virtual std::size_t attention_workspace(const ops::AttentionArgs& args) const = 0;
  /// Whether attention() for these shapes writes quantized rows, and head_attention() and
  /// projected_attention(), which do more before it; what pointers refer to is not read. What holds
  /// for the rows of one member holds for a team, which has more.
  [[nodiscard]] virtual bool quantizes_attention(const ops::AttentionArgs&) const { return false; }
  virtual void cross_attention(const Submission& submission,
                               const ops::CrossAttentionArgs& args) const = 0;
  /// Takes what attention() over attention_args(args) takes.
  virtual void head_attention(const Submission& submission,
                              const ops::HeadAttentionArgs& args) const = 0;
  /// The steps of head_attention() before the attention: norms and rotation, in args.qkv.
  virtual void prepare_heads(const Submission& submission,
                             const ops::HeadAttentionArgs& args) const = 0;
  /// Takes what linear() over projection_args(args) and head_attention() over
  /// head_attention_args(args) take. Called for a team only where the next says so.
  virtual void projected_attention(const Submission& submission,
                                   const ops::ProjectedAttentionArgs& args) const = 0;
  /// Bytes that projected_attention() of a team of `size` takes from the arena behind those of
  /// linear(); what pointers refer to is not read, and all members get the same answer. Nothing
  /// where the backend has no way of its own: the steps are computed one after the other then.
  [[nodiscard]] virtual std::optional<std::size_t> team_attention_workspace(
      const ops::ProjectedAttentionArgs&, int /*size*/) const {
    return std::nullopt;
  }
  /// Backends that compute blocks op by op return nothing here and from the next two.
  [[nodiscard]] virtual ops::PreparedBlocks prepare_blocks(
      Device&, std::span<const ops::BlockLayers>) const {
    return {};
  }
  [[nodiscard]] virtual std::optional<std::vector<TensorView>> add_blocks(
      const Submission&, const ops::AddBlocksArgs&) const {
    return std::nullopt;
  }
  /// Bytes that add_blocks() takes from the arena; what pointers refer to is not read. For those
  /// who size arenas.
  [[nodiscard]] virtual std::size_t add_blocks_workspace(const ops::AddBlocksArgs&) const {
    return 0;
  }
  virtual void patchify(const Submission& submission, const ops::PatchifyArgs& args) const = 0;
  virtual void add_positions_bilinear(const Submission& submission,
                                      const ops::AddPositionsArgs& args) const = 0;
  virtual void add_positions_half_pixel(const Submission& submission,
                                        const ops::AddPositionsArgs& args) const = 0;
  virtual void add_positions_bicubic(const Submission& submission,
                                     const ops::AddPositionsArgs& args) const = 0;
  virtual void add_positions_antialiased(const Submission& submission,
                                         const ops::AddPositionsArgs& args) const = 0;
  virtual void interpolate_grids(const Submission& submission,
                                 const ops::InterpolateGridsArgs& args) const = 0;
  virtual void gather_rows(const Submission& submission, const ops::GatherRowsArgs& args) const = 0;
  virtual void copy_row_blocks(const Submission& submission,
                               const ops::CopyRowBlocksArgs& args) const = 0;
  virtual void add_table(const Submission& submission, const ops::AddTableArgs& args) const = 0;
  virtual void mean_row_blocks(const Submission& submission,
                               const ops::MeanRowBlocksArgs& args) const = 0;
  virtual void im2col_3x3(const Submission& submission, const ops::Im2colArgs& args) const = 0;
  virtual void grid_attention(const Submission& submission,
                              const ops::GridAttentionArgs& args) const = 0;
  /// Bytes that grid_attention() takes from the arena, as attention_workspace() for attention().
  [[nodiscard]] virtual std::size_t grid_attention_workspace(
      const ops::GridAttentionArgs& args) const = 0;
};

}  // namespace fovea
