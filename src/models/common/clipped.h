#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "fovea/tower/device/device.h"
#include "fovea/tower/ops/context.h"
#include "fovea/tower/ops/linear.h"
#include "models/common/fused_weights.h"
#include "models/common/weight_loader.h"

namespace fovea::common {

// Linear layers side by side, whose inputs and results may have bounds. As in layers.h, functions
// submit to ctx.stream, return at once and are safe to capture.

/// Bounds of columns.
struct Bounds {
  Tensor least;  ///< [columns] f32
  Tensor most;   ///< [columns] f32
};

/// Linear layers over the same rows, whose results lie side by side.
struct ClippedLinears {
  struct Part {
    std::optional<Bounds> input;
    ops::PackedLinear layer;
  };
  std::vector<Part> parts;  ///< at least one
  std::optional<Bounds> output;

  [[nodiscard]] std::int64_t in_features() const { return parts.front().layer.in_features; }
  [[nodiscard]] std::int64_t out_features() const;
};

/// A layer of a checkpoint, `<name>.linear.weight`, and the order of its rows; none: as stored.
struct StoredLayer {
  std::string name;
  std::vector<std::int64_t> rows = {};
};

/// Layers without biases as one GEMM; or, where `is_clipped`, one for each, because their inputs
/// have bounds of their own: the numbers `<name>.input_min`, `.input_max`, `.output_min` and
/// `.output_max`.
/// @param shape of each of them: part_rows, in_sizes, and what they are filled up to.
[[nodiscard]] ClippedLinears load_linears(WeightLoader& loader,
                                          const std::vector<StoredLayer>& layers,
                                          const FusedWeights& shape, bool is_clipped);

/// Memory in ctx.arena for rows that `layers` read, as ops::input_rows: bounds hold for rows of the
/// activation dtype.
[[nodiscard]] TensorView input_rows(ExecContext& ctx, const ClippedLinears& layers,
                                    const ConstTensorView& like);

/// out = clip(layer(clip(x))) of every part, the outer clip where there is `output`.
/// @param x of input_rows, or of the activation dtype, [rows, in_features]. @param out [rows,
/// out_features]; no overlap with x.
void project(ExecContext& ctx, const ClippedLinears& layers, ConstTensorView x, LiveRows rows,
             TensorView out);

}  // namespace fovea::common
