#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "checkpoint/hf_config.h"
#include "fovea/options.h"
#include "media/resize/resize.h"
#include "models/common/views/tiles.h"
#include "models/deepseek_ocr/config.h"

namespace fovea::deepseek_ocr {

/// How images become views: the whole image on a grey canvas, and local tiles of large ones.
struct Processing {
  /// The sizes stand in no file: these are those of the vendor's default mode ("gundam").
  Views views{view_of(1024), view_of(640)};
  std::int64_t tile_threshold_px = 640;  ///< images with a longer side are tiled
  std::int64_t min_tiles = 2;
  std::int64_t max_tiles = 6;
  std::array<float, 3> image_mean{0.5f, 0.5f, 0.5f};
  std::array<float, 3> image_std{0.5f, 0.5f, 0.5f};
  media::ResizeEngine engine = media::ResizeEngine::kPillow;
  std::string assumptions;  ///< ItemProcessor::assumptions
  std::string sources;      ///< ItemProcessor::sources
};

/// Mean and deviation from processor_config.json, if there is one.
/// @throws Error(kCorruptData) naming the key for wrong types and deviations that are not above 0.
[[nodiscard]] Processing read_processing(const checkpoint::HfConfig& files,
                                         const MediaOptions& media);

/// The tiling of a planned image; nothing where it is not tiled.
[[nodiscard]] std::optional<common::Tiling> tiling_of(const ItemPlan& plan);

/// The host side. Pixels of an item are the global view, then the tiles, row by row of the image;
/// plan.grid is (1, tile rows, tile columns).
/// Source: docs/reference/deepseek_ocr.md, "Tiles" and "Global view".
class Processor final : public ItemProcessor {
 public:
  explicit Processor(Processing processing) : p_(std::move(processing)) {}

  [[nodiscard]] const Processing& processing() const noexcept { return p_; }

  /// @throws Error(kInvalidArgument) for images so thin that a side of the global view would
  /// vanish.
  [[nodiscard]] ItemPlan plan_image(std::int64_t width_px, std::int64_t height_px) const override;
  void fill_frame(const ItemPlan& plan, std::int64_t index, const RgbView& frame,
                  std::span<std::uint8_t> out) const override;
  [[nodiscard]] std::string assumptions() const override { return p_.assumptions; }
  [[nodiscard]] std::string sources() const override { return p_.sources; }

 private:
  [[nodiscard]] common::Tiling choose_tiling(std::int64_t width_px, std::int64_t height_px) const;
  void fill_global(const ItemPlan& plan, RgbView image, std::span<std::uint8_t> out) const;

  Processing p_;
};

}  // namespace fovea::deepseek_ocr
