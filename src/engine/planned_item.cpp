// What is known of an item before it is decoded.
#include "engine/planned_item.h"

#include <array>
#include <string>
#include <utility>
#include <variant>

#include "core/check.h"
#include "engine/prepare/check_item.h"
#include "engine/prepare/frame_writer.h"
#include "media/limits.h"

namespace fovea {

namespace {

/// The grid that finished rows came with.
std::optional<std::array<std::int64_t, 3>> finished_grid(const MediaItem& media) {
  if (const auto* const rows = std::get_if<PrecomputedRows>(&media.source)) return rows->grid_thw;
  return std::get<PrecomputedBlock>(media.source).grid_thw;
}

}  // namespace

PlannedItem::PlannedItem(MediaItem media)
    : media_(std::make_shared<const MediaItem>(std::move(media))) {}

PlannedItem::PlannedItem(std::shared_ptr<const MediaItem> media,
                         std::shared_ptr<const Plan> plan) noexcept
    : media_(std::move(media)), plan_(std::move(plan)) {}

std::optional<std::int64_t> PlannedItem::patches() const noexcept {
  if (is_finished(*media_)) return 0;
  return plan_ ? std::optional(plan_->sizes.spec.input_rows) : std::nullopt;
}

std::optional<std::int64_t> PlannedItem::rows() const {
  if (is_finished(*media_)) return num_finished_rows(*media_);
  if (!plan_) return std::nullopt;
  return final_rows(plan_->sizes, plan_->context->pruning);
}

std::optional<ItemInfo> PlannedItem::info() const {
  const std::optional<std::int64_t> known = rows();
  if (!known) return std::nullopt;
  ItemInfo info = plan_
                      ? describe(plan_->sizes, plan_->context->pruning)
                      : ItemInfo{.modality = media_->modality, .grid_thw = finished_grid(*media_)};
  info.name = media_->name;
  info.rows = *known;
  return info;
}

std::int64_t final_rows(const ItemPlan& plan, const PruningRule& pruning) {
  return pruning.applies_to(plan.modality) ? num_retained(plan.spec.out_rows, plan.grid[0], pruning)
                                           : plan.spec.out_rows;
}

std::string size_name(std::int64_t width_px, std::int64_t height_px,
                      std::optional<std::int64_t> num_frames) {
  const std::string image = cat(width_px, "x", height_px);
  return num_frames ? cat(image, "x", *num_frames, "f") : image;
}

ItemPlan plan_item(const ItemProcessor& processor, const ItemSize& size,
                   const MediaLimits& limits) {
  const bool is_video = size.modality == Modality::kVideo || size.num_frames != 1;
  const std::string name = size_name(size.width_px, size.height_px,
                                     is_video ? std::optional(size.num_frames) : std::nullopt);
  media::check_image_size(size.width_px, size.height_px, name, limits);
  media::check_num_frames(size.num_frames, name, limits);
  return plan_size(processor, size, name, limits);
}

ItemInfo describe(const ItemPlan& plan, const PruningRule& pruning) {
  ItemInfo info;
  info.name =
      size_name(plan.source_width_px, plan.source_height_px,
                plan.modality == Modality::kVideo ? std::optional(plan.num_frames) : std::nullopt);
  info.modality = plan.modality;
  info.source_width_px = plan.source_width_px;
  info.source_height_px = plan.source_height_px;
  info.num_frames = plan.num_frames;
  info.resized_width_px = plan.resized_width_px;
  info.resized_height_px = plan.resized_height_px;
  if (plan.has_grid_thw) info.grid_thw = plan.grid;
  info.patches = plan.spec.input_rows;
  info.rows = final_rows(plan, pruning);
  info.units = units_of(plan.spec);
  return info;
}

}  // namespace fovea
