#pragma once

#include "device/device.h"
#include "ops/attention.h"
#include "ops/grid.h"
#include "ops/linear.h"
#include "ops/norm.h"
#include "ops/patch.h"
#include "ops/rope.h"
#include "ops/rows.h"

namespace fovea {

/// What a backend must compute: one function per op. Arguments have been checked by the op
/// functions in ops/*.h, whose comments are the contract; nothing here is called for empty inputs.
/// Every body submits to the given stream and is safe to capture. Thread-safe, but for kernels that
/// count (cost_kernels.h); no result depends on what was called before, other than through
/// measurements of which way is fastest.
class Kernels {
 public:
  virtual ~Kernels() = default;

  [[nodiscard]] virtual ops::PackedLinear pack_linear(Device& device, ConstTensorView weight,
                                                      ConstTensorView bias) const = 0;
  virtual void linear(Stream& stream, const ops::LinearArgs& args) const = 0;
  virtual void layer_norm(Stream& stream, const ops::LayerNormArgs& args) const = 0;
  virtual void rms_norm(Stream& stream, const ops::RmsNormArgs& args) const = 0;
  virtual void rope_angles(Stream& stream, const ops::RopeAnglesArgs& args) const = 0;
  virtual void rope(Stream& stream, const ops::RopeArgs& args) const = 0;
  /// Bytes of device scratch that attention() needs for these shapes.
  [[nodiscard]] virtual std::size_t attention_workspace(const ops::AttentionArgs& args) const = 0;
  virtual void attention(Stream& stream, const ops::AttentionArgs& args) const = 0;
  virtual void patchify(Stream& stream, const ops::PatchifyArgs& args) const = 0;
  virtual void add_positions_bilinear(Stream& stream, const ops::AddPositionsArgs& args) const = 0;
  virtual void gather_rows(Stream& stream, const ops::GatherRowsArgs& args) const = 0;
  virtual void copy_row_blocks(Stream& stream, const ops::CopyRowBlocksArgs& args) const = 0;
  virtual void add_table(Stream& stream, const ops::AddTableArgs& args) const = 0;
  virtual void im2col_3x3(Stream& stream, const ops::Im2colArgs& args) const = 0;
  /// Bytes of device scratch that grid_attention() needs for these shapes.
  [[nodiscard]] virtual std::size_t grid_attention_workspace(
      const ops::GridAttentionArgs& args) const = 0;
  virtual void grid_attention(Stream& stream, const ops::GridAttentionArgs& args) const = 0;
};

}  // namespace fovea
