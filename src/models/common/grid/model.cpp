// The answers that all models over grids give alike.
#include "models/common/grid/model.h"

#include <algorithm>

#include "core/check.h"
#include "models/common/grid/inputs.h"

namespace fovea::common {

namespace {

constexpr std::int64_t kMaxPatchesPerVideo = 32;  // in time; longer videos run eagerly

std::string text(PixelRange range) { return cat(range.min_pixels, "..", range.max_pixels); }

TowerAnswers answers_of(GridTower tower, const GridProcessing& p) {
  const bool videos = p.video_size != nullptr && p.video_refusal.empty();
  TowerAnswers answers{.spec = {.modalities = {Modality::kImage}}, .facts = std::move(tower.facts)};
  GraphSpec& spec = answers.spec;
  if (videos) spec.modalities.push_back(Modality::kVideo);
  spec.main_width = tower.main_width;
  spec.out_width = tower.out_width;
  spec.max_frames_per_video = videos ? kMaxPatchesPerVideo * p.geometry.frames_apart() : 1;
  spec.attention_parity_rows = tower.attention_parity_rows;
  spec.team_heads = p.geometry.frames == FrameUse::kJoined ? tower.team_heads : 0;

  Facts& facts = answers.facts;
  facts.emplace_back("patch_size", cat(p.geometry.patch_size));
  facts.emplace_back("spatial_merge_size", cat(p.geometry.spatial_merge_size));
  facts.emplace_back("temporal_patch_size", cat(p.geometry.temporal_patch_size));
  facts.emplace_back("image pixels", text(p.limits.image));
  if (videos) facts.emplace_back("video pixels", text(p.limits.video));
  return answers;
}

}  // namespace

GridModel::GridModel(GridTower tower, GridProcessing processing)
    : GridModel(std::move(tower), std::make_unique<GridProcessor>(std::move(processing))) {}

GridModel::GridModel(GridTower tower, std::unique_ptr<const GridProcessor> processor)
    // Braces evaluate in order: the processor is read before it is moved.
    : TowerModel{answers_of(std::move(tower), processor->processing()), std::move(processor)} {}

GraphCapacity GridModel::view_capacity(const GraphCapacity& capacity) const {
  const GridProcessing& p = processing();
  if (!p.views_of) return capacity;
  GraphCapacity views = capacity;
  views.seqs = std::max<std::int64_t>(1, capacity.tokens / p.least_view_tokens);
  return views;
}

std::vector<GridRun> GridModel::view_runs(std::span<const ItemPart> parts) const {
  const ViewsOf& views_of = processing().views_of;
  return views_of ? runs_of(parts, views_of) : runs_of(geometry(), parts);
}

std::vector<BufferDecl> GridModel::inputs(PathId, const GraphCapacity& capacity) const {
  return GridInputs::declare(geometry(), view_capacity(capacity));
}

void GridModel::fill_inputs(PathId, const GraphCapacity&, std::span<const ItemPart> parts,
                            InputWriter& writer) const {
  GridInputs::fill(geometry(), view_runs(parts), writer);
}

}  // namespace fovea::common
