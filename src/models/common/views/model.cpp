// The answers that all models over square views give alike.
#include "models/common/views/model.h"

#include "models/common/vectors.h"

namespace fovea::common {

namespace {

GraphSpec spec_of(const ViewTower& tower) {
  GraphSpec graph{.modalities = tower.modalities,
                  .main_width = tower.width,
                  .out_width = tower.width,
                  .min_token_budget = tower.paths.front().layout.tokens,
                  .max_token_budget = tower.max_token_budget,
                  .paths = {}};
  for (const ViewPath& path : tower.paths) {
    const std::int64_t unit = path.layout.tokens;
    PathSpec& spec = graph.paths.emplace_back();
    spec.name = path.name;
    spec.min_token_budget = unit;
    spec.allow_zero_tokens = path.allow_zero_tokens;
    spec.unit = unit;
    if (path.max_item_views) spec.max_item_tokens = *path.max_item_views * unit;
  }
  return graph;
}

}  // namespace

ViewModel::ViewModel(ViewTower tower, std::unique_ptr<const ItemProcessor> processor)
    : TowerModel({.spec = spec_of(tower), .facts = tower.facts}, std::move(processor)),
      tower_(std::move(tower)) {}

std::vector<BufferDecl> ViewModel::inputs(PathId path, const GraphCapacity& capacity) const {
  return ViewInputs::declare(layout(path), views_of(path, capacity));
}

void ViewModel::fill_inputs(PathId path, const GraphCapacity& capacity,
                            std::span<const ItemPart> parts, InputWriter& writer) const {
  std::int64_t views = 0;  // an item that is one unit may have several
  for (const ItemPart& part : parts) views += part.patches() / layout(path).view.patches();
  std::byte* to =
      ViewInputs::fill(layout(path), views_of(path, capacity), views, parts.size(), writer);
  for (const ItemPart& part : parts) {
    const std::span<const std::uint8_t> pixels = part.pixels();
    writer.copy(to, pixels);
    to += pixels.size();
  }
}

void ViewModel::assemble(ExecContext& ctx, PathId path, TensorView rows,
                         std::span<const ItemPart> parts, std::span<const TensorView> out) const {
  if (!tower_.vectors) return EncoderGraphModel::assemble(ctx, path, rows, parts, out);
  assemble_vectors(ctx, rows, parts, out);
}

std::int64_t ViewModel::views_of(PathId path, const GraphCapacity& capacity) const {
  return capacity.tokens / layout(path).tokens;
}

std::int64_t ViewModel::views_of(std::span<const ItemPart> parts) {
  std::int64_t views = 0;
  for (const ItemPart& part : parts) views += part.count;
  return views;
}

ViewInputs ViewModel::view_inputs(PathId path, const GraphCapacity& capacity,
                                  const NamedTensors& in) const {
  return ViewInputs::of(layout(path), views_of(path, capacity), in);
}

const ViewLayout& ViewModel::layout(PathId path) const {
  return tower_.paths[static_cast<std::size_t>(path)].layout;
}

}  // namespace fovea::common
