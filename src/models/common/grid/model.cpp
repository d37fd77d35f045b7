// The answers that all models over grids give alike.
#include "models/common/grid/model.h"

#include <algorithm>

#include "core/check.h"
#include "models/common/grid/inputs.h"

namespace fovea::common {

namespace {

constexpr std::int64_t kMaxPatchesPerVideo = 32;  // in time; longer videos run eagerly

std::string text(PixelRange range) { return cat(range.min_pixels, "..", range.max_pixels); }

}  // namespace

GridModel::GridModel(GridTower tower, GridProcessing processing)
    : GridModel(std::move(tower), std::make_unique<GridProcessor>(std::move(processing))) {}

GridModel::GridModel(GridTower tower, std::unique_ptr<const GridProcessor> processor)
    : processor_(std::move(processor)), facts_(std::move(tower.facts)) {
  const GridProcessing& p = processor_->processing();
  const bool videos = p.video_size != nullptr && p.video_refusal.empty();
  spec_.modalities = {Modality::kImage};
  if (videos) spec_.modalities.push_back(Modality::kVideo);
  spec_.main_width = tower.main_width;
  spec_.out_width = tower.out_width;
  spec_.max_frames_per_video = videos ? kMaxPatchesPerVideo * p.geometry.frames_apart() : 1;
  spec_.attention_parity_rows = tower.attention_parity_rows;

  facts_.emplace_back("patch_size", cat(p.geometry.patch_size));
  facts_.emplace_back("spatial_merge_size", cat(p.geometry.spatial_merge_size));
  facts_.emplace_back("temporal_patch_size", cat(p.geometry.temporal_patch_size));
  facts_.emplace_back("image pixels", text(p.limits.image));
  if (videos) facts_.emplace_back("video pixels", text(p.limits.video));
}

std::vector<std::pair<std::string, std::string>> GridModel::facts() const { return facts_; }

GraphCapacity GridModel::view_capacity(const GraphCapacity& capacity) const {
  const GridProcessing& p = processor_->processing();
  if (!p.views_of) return capacity;
  GraphCapacity views = capacity;
  views.seqs = std::max<std::int64_t>(1, capacity.tokens / p.least_view_tokens);
  return views;
}

std::vector<BufferDecl> GridModel::inputs(PathId, const GraphCapacity& capacity) const {
  return GridInputs::declare(geometry(), view_capacity(capacity));
}

void GridModel::fill_inputs(PathId, const GraphCapacity&, std::span<const ItemPart> parts,
                            InputWriter& writer) const {
  GridInputs::fill(geometry(), view_runs(parts).runs(), writer);
}

}  // namespace fovea::common
