// Linear layers with bounds in terms of ops.
#include "models/common/clipped.h"

#include <span>

#include "core/check.h"
#include "fovea/tower/ops/activate.h"

namespace fovea::common {

namespace {

/// The bounds of one side of `layers`, for `columns` columns each.
Bounds load_bounds(WeightLoader& loader, std::span<const StoredLayer> layers, const char* side,
                   std::int64_t columns) {
  const auto load = [&](const char* end) {
    std::vector<std::string> names;
    for (const StoredLayer& layer : layers) names.push_back(cat(layer.name, ".", side, end));
    return loader.repeated(names, columns);
  };
  return {.least = load("_min"), .most = load("_max")};
}

ops::PackedLinear load_together(WeightLoader& loader, std::span<const StoredLayer> layers,
                                FusedWeights fused) {
  bool is_ordered = false;
  for (const StoredLayer& layer : layers) {
    const std::int64_t first = std::ssize(fused.parts) * fused.part_rows;
    const bool as_stored = layer.rows.empty();
    for (std::int64_t row = 0; row < fused.part_rows; ++row) {
      fused.rows.push_back(first + (as_stored ? row : layer.rows[static_cast<std::size_t>(row)]));
    }
    fused.parts.push_back(layer.name + ".linear");
    is_ordered = is_ordered || !as_stored;
  }
  if (!is_ordered) fused.rows.clear();
  return loader.fused(fused, WeightLoader::Bias::kNo);
}

void clip(ExecContext& ctx, const Bounds& bounds, ConstTensorView x, LiveRows rows,
          TensorView out) {
  ops::clamp(
      ctx,
      {.x = x, .least = bounds.least.view(), .most = bounds.most.view(), .rows = rows, .out = out});
}

}  // namespace

std::int64_t ClippedLinears::out_features() const {
  std::int64_t features = 0;
  for (const Part& part : parts) features += part.layer.out_features;
  return features;
}

ClippedLinears load_linears(WeightLoader& loader, const std::vector<StoredLayer>& layers,
                            const FusedWeights& shape, bool is_clipped) {
  ClippedLinears result;
  if (!is_clipped) {
    result.parts.push_back({.input = {}, .layer = load_together(loader, layers, shape)});
    return result;
  }
  for (const StoredLayer& layer : layers) {
    const std::span one(&layer, 1);
    result.parts.push_back({.input = load_bounds(loader, one, "input", shape.in_features()),
                            .layer = load_together(loader, one, shape)});
  }
  const std::int64_t columns = result.out_features() / std::ssize(layers);
  result.output = load_bounds(loader, layers, "output", columns);
  return result;
}

TensorView input_rows(ExecContext& ctx, const ClippedLinears& layers, const ConstTensorView& like) {
  const ClippedLinears::Part& first = layers.parts.front();
  if (first.input) return ctx.arena.tensor(like.dtype, like.shape);
  return ops::input_rows(ctx, first.layer, like);
}

void project(ExecContext& ctx, const ClippedLinears& layers, ConstTensorView x, LiveRows rows,
             TensorView out) {
  std::int64_t column = 0;
  for (const ClippedLinears::Part& part : layers.parts) {
    const Arena::Scope scope(ctx.arena);
    ConstTensorView input = x;
    if (part.input) {
      const TensorView clipped = ctx.arena.tensor(x.dtype, x.shape);
      clip(ctx, *part.input, x, rows, clipped);
      input = clipped;
    }
    ops::linear(ctx,
                {.x = input, .weight = part.layer, .rows = rows, .out = out, .out_column = column});
    column += part.layer.out_features;
  }
  if (layers.output) clip(ctx, *layers.output, out, rows, out);
}

}  // namespace fovea::common
