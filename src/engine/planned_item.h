#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "engine/pruning/video_pruning.h"
#include "fovea/planned_item.h"
#include "fovea/tower/models/item_processor.h"

namespace fovea {

/// What the plans of an engine have in common, and it knows them by.
struct PlanContext {
  PruningRule pruning;
};

struct PlannedItem::Plan {
  ItemPlan sizes;
  std::shared_ptr<const PlanContext> context;
};

/// Rows of an item after pruning.
[[nodiscard]] std::int64_t final_rows(const ItemPlan& plan, const PruningRule& pruning);

/// "640x480", or "640x480x8f" for a video.
[[nodiscard]] std::string size_name(std::int64_t width_px, std::int64_t height_px,
                                    std::optional<std::int64_t> num_frames);

/// The plan of an item of this size, which the limits must allow. @throws as plan_size.
[[nodiscard]] ItemPlan plan_item(const ItemProcessor& processor, const ItemSize& size,
                                 const MediaLimits& limits);

/// What becomes of an item, named by its size.
[[nodiscard]] ItemInfo describe(const ItemPlan& plan, const PruningRule& pruning);

}  // namespace fovea
