#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "fovea/export.h"
#include "fovea/media.h"
#include "fovea/reports.h"

namespace fovea {

/// An item and its plan: what becomes of it, as far as its description or the header of an image
/// tells without decoding. Engine::plan_items() makes plans, and everything that encodes the items
/// reads them. A copy refers to the same item and plan, neither of which changes; bytes are not
/// copied.
///
/// A plan is a forecast: what encode() decodes is compared with it. A file that has changed since
/// is planned anew, so that its rows are always those of what was read.
class FOVEA_API PlannedItem {
 public:
  struct Plan;  ///< of an engine

  /// An item without a plan: it gets one when it is decoded.
  explicit PlannedItem(MediaItem media);
  /// @param media not null; nobody changes it while a copy of this object refers to it.
  /// @param plan of this item; null: none.
  explicit PlannedItem(std::shared_ptr<const MediaItem> media,
                       std::shared_ptr<const Plan> plan = nullptr) noexcept;

  [[nodiscard]] const MediaItem& media() const noexcept { return *media_; }
  /// What the engine knows; null for finished rows, for what tells its size only when it is decoded
  /// (videos in containers), and for what encode() will refuse.
  [[nodiscard]] const Plan* plan() const noexcept { return plan_.get(); }

  /// Patches that enter the tower; 0 for finished rows, absent where there is no plan.
  [[nodiscard]] std::optional<std::int64_t> patches() const noexcept;
  /// Rows that come out, after pruning; absent where there is neither a plan nor finished rows.
  [[nodiscard]] std::optional<std::int64_t> rows() const;
  /// All of it, with the item's own name; absent where rows() is. Finished rows have no patches and
  /// no units.
  [[nodiscard]] std::optional<ItemInfo> info() const;

 private:
  std::shared_ptr<const MediaItem> media_;
  std::shared_ptr<const Plan> plan_;
};

}  // namespace fovea
