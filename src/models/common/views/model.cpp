// The answers that all models over square views give alike.
#include "models/common/views/model.h"

namespace fovea::common {

ViewModel::ViewModel(ViewTower tower, std::unique_ptr<const ItemProcessor> processor)
    : tower_(std::move(tower)), processor_(std::move(processor)) {
  spec_.modalities = tower_.modalities;
  spec_.main_width = tower_.width;
  spec_.out_width = tower_.width;
  spec_.min_token_budget = tower_.paths.front().layout.tokens;
  spec_.max_token_budget = tower_.max_token_budget;
  spec_.paths.clear();
  for (const ViewPath& path : tower_.paths) {
    const std::int64_t unit = path.layout.tokens;
    PathSpec& spec = spec_.paths.emplace_back();
    spec.name = path.name;
    spec.min_token_budget = unit;
    spec.allow_zero_tokens = path.allow_zero_tokens;
    spec.unit = unit;
    if (path.max_item_views) spec.max_item_tokens = *path.max_item_views * unit;
  }
}

std::vector<BufferDecl> ViewModel::inputs(PathId path, const GraphCapacity& capacity) const {
  return ViewInputs::declare(layout(path), views_of(path, capacity));
}

void ViewModel::fill_inputs(PathId path, const GraphCapacity& capacity,
                            std::span<const PreparedItem* const> items, InputWriter& writer) const {
  std::byte* to = ViewInputs::fill(layout(path), views_of(path, capacity), views_of(path, items),
                                   items.size(), writer);
  for (const PreparedItem* item : items) {
    const std::span<const std::uint8_t> pixels = pixels_of(path, *item);
    writer.copy(to, pixels);
    to += pixels.size();
  }
}

std::int64_t ViewModel::views_of(PathId path, const GraphCapacity& capacity) const {
  return capacity.tokens / layout(path).tokens;
}

std::int64_t ViewModel::views_of(PathId path, std::span<const PreparedItem* const> items) const {
  std::int64_t views = 0;
  for (const PreparedItem* item : items) views += views_of(path, *item);
  return views;
}

std::int64_t ViewModel::views_of(PathId path, const PreparedItem& item) const {
  return item.plan.spec.path_tokens[static_cast<std::size_t>(path)] / layout(path).tokens;
}

ViewInputs ViewModel::view_inputs(PathId path, const GraphCapacity& capacity,
                                  const NamedTensors& in) const {
  return ViewInputs::of(layout(path), views_of(path, capacity), in);
}

const ViewLayout& ViewModel::layout(PathId path) const {
  return tower_.paths[static_cast<std::size_t>(path)].layout;
}

std::span<const std::uint8_t> ViewModel::pixels_of(PathId path, const PreparedItem& item) const {
  const auto bytes = [&](PathId of) {
    return static_cast<std::size_t>(views_of(of, item)) * layout(of).view.pixel_bytes();
  };
  std::size_t first = 0;
  for (PathId before = 0; before < path; ++before) first += bytes(before);
  return std::span(item.pixels).subspan(first, bytes(path));
}

}  // namespace fovea::common
