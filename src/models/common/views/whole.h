#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "checkpoint/hf_config.h"
#include "fovea/options.h"
#include "fovea/tower/models/item_processor.h"
#include "media/resize/resize.h"
#include "models/common/geometry.h"
#include "models/common/processor_file.h"

namespace fovea::common {

/// How a whole image becomes one square view, as the processor classes of transformers do it for
/// encoders for retrieval: it is resized, and its middle is the view.
struct WholeImage {
  std::int64_t shortest_edge = 0;  ///< of the resized image; 0: it is the two sides below, whatever
                                   ///< its ratio was
  std::int64_t height_px = 0;
  std::int64_t width_px = 0;
  std::int64_t side_px = 0;  ///< of the view; a resized image that is smaller lies on black
  bool in_floats = false;    ///< resized in floats (media::resize_rgb_fine), to planes of bytes
  media::ResizeEngine engine = media::ResizeEngine::kTorchvision;
  media::ResizeFilter filter = media::ResizeFilter::kBicubic;
  PixelScaling scaling;
  std::string assumptions;  ///< ItemProcessor::assumptions
  std::string sources;      ///< ItemProcessor::sources
};

/// Reads the processor file. Its image_processor_type says what it means where it is silent.
/// @param processor_class of the family, where the file names none.
/// @throws Error(kCorruptData) for wrong types, Error(kUnsupported) for another class, for views
/// that are no squares, for another filter than bilinear and bicubic, and for steps that are
/// switched off. Source: docs/reference/retrieval.md, "Processing".
[[nodiscard]] WholeImage read_whole_image(const checkpoint::HfConfig& files,
                                          const MediaOptions& media,
                                          std::string_view processor_class);

/// Requires the views of the processor file to be those of the tower.
/// @param side_px image_size of config.json. @throws Error(kUnsupported) with both sides.
void check_view_side(const checkpoint::HfConfig& files, const WholeImage& image,
                     std::int64_t side_px);

/// The tokens of an image, and how many of them are its rows.
struct WholeImageRows {
  std::int64_t tokens = 0;
  bool vector = false;  ///< it has one row, its vector (vectors.h)
};

/// The host side. Pixels of an image are its view; plan.grid is (1, 1, 1).
class WholeImageProcessor final : public ItemProcessor {
 public:
  /// @param view of image.side_px; several planes where it is resized in floats.
  WholeImageProcessor(WholeImage image, const SquareView& view, WholeImageRows rows);

  /// @throws Error(kInvalidArgument) also for an image so narrow that its longer side would be
  /// resized to more than 2^26 pixels in all.
  [[nodiscard]] ItemPlan plan_image(std::int64_t width_px, std::int64_t height_px) const override;
  void fill_frame(const ItemPlan& plan, std::int64_t index, const RgbView& frame,
                  std::span<std::uint8_t> out) const override;
  [[nodiscard]] std::string assumptions() const override { return image_.assumptions; }
  [[nodiscard]] std::string sources() const override { return image_.sources; }

 private:
  WholeImage image_;
  SquareView view_;
  WholeImageRows rows_;
};

}  // namespace fovea::common
