#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <utility>

#include "checkpoint/hf_config.h"
#include "fovea/options.h"
#include "fovea/tower/models/item_processor.h"
#include "media/image.h"
#include "media/resize/resize.h"
#include "models/common/processor_file.h"
#include "models/common/views/windows.h"
#include "models/step3p7/config.h"

namespace fovea::step3p7 {

/// Paths of the model protocol.
enum Path : PathId { kGlobal = 0, kLocal = 1, kNumPaths = 2 };

/// Views and scaling of images, from the processor file.
struct Processing {
  common::WindowRule rule;
  std::array<common::SquareView, kNumPaths> views;  ///< the whole image, and a window
  common::PixelScaling scaling = common::kClipScaling;
  media::ResizeEngine engine = media::ResizeEngine::kTorchvision;
  std::string assumptions;  ///< ItemProcessor::assumptions
  std::string sources;      ///< ItemProcessor::sources
};

/// @throws Error(kCorruptData) naming the key for wrong types, Error(kUnsupported) for sizes that
/// contradict `config` or make no whole tokens, another filter, and steps that are switched off.
/// Source: docs/reference/step3p7.md, "Processing".
[[nodiscard]] Processing read_processing(const checkpoint::HfConfig& files, const Config& config,
                                         const MediaOptions& media);

/// The host side. Pixels of an item are the whole image as a square, then its windows, row by row;
/// plan.grid is (1, window rows, window columns), (1, 0, 0) for an image without windows.
class Processor final : public ItemProcessor {
 public:
  explicit Processor(Processing processing) : p_(std::move(processing)) {}

  /// @throws Error(kInvalidArgument) as common::plan_crop.
  [[nodiscard]] ItemPlan plan_image(std::int64_t width_px, std::int64_t height_px) const override;
  void fill_frame(const ItemPlan& plan, std::int64_t index, const RgbView& frame,
                  std::span<std::uint8_t> out) const override;
  [[nodiscard]] std::string assumptions() const override { return p_.assumptions; }
  [[nodiscard]] std::string sources() const override { return p_.sources; }

 private:
  void fill_windows(const RgbView& image, const common::Crop& crop,
                    std::span<std::uint8_t> out) const;
  [[nodiscard]] media::Image resized(const RgbView& image, std::int64_t width_px,
                                     std::int64_t height_px) const;
  void fill_view(const RgbView& image, const common::SquareView& view,
                 std::span<std::uint8_t> out) const;

  Processing p_;
};

}  // namespace fovea::step3p7
