#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

#include "fovea/media.h"
#include "fovea/options.h"
#include "fovea/tower/core/tensor_view.h"
#include "fovea/tower/device/device.h"
#include "fovea/tower/models/item_processor.h"

namespace fovea {

// Whether items are what their source says, before anything is read or decoded. Each function
// throws Error(kInvalidArgument), but for check_plan().

/// Whether an item is rows already, which no tower has to compute.
[[nodiscard]] inline bool is_finished(const MediaItem& media) noexcept {
  return std::holds_alternative<PrecomputedRows>(media.source) ||
         std::holds_alternative<PrecomputedBlock>(media.source);
}

/// The rows of such an item.
[[nodiscard]] std::int64_t num_finished_rows(const MediaItem& media) noexcept;

/// The grid of an item that comes as pixel values or their bytes, wherever; null for others.
[[nodiscard]] const std::array<std::int64_t, 3>* patch_grid(const MediaItem& media) noexcept;

/// Whether an item is an encoded image or a container, as opposed to the frames of a video.
[[nodiscard]] inline bool is_encoded(const MediaItem& media) noexcept {
  return std::holds_alternative<EncodedFile>(media.source) ||
         std::holds_alternative<EncodedBytes>(media.source);
}

/// Requires bytes of patches in memory that the engine reaches, and there where it computes.
/// @param device any of the engine. @param name of the item.
void check_block(const PixelBlock& block, const Device& device, const std::string& name);

/// What messages call a frame of an item that was given as encoded frames: "clip[3]".
[[nodiscard]] std::string frame_name(const MediaItem& media, std::size_t frame);

/// Requires the path or bytes that the source of an item needs: a path of a file, frames or files
/// of them, bytes of what is encoded.
void check_source(const MediaItem& media);

/// Requires a size within the limits, and bytes that fit it, of decoded pixels.
/// @param name of the item.
void check_rgb(const RgbFrames& rgb, const std::string& name, const MediaLimits& limits);

/// Requires sizes that fit each other of what a tower has planned: counts from 0 up, and units that
/// make up the item. Memory is made of them, and its parts are found by them.
/// @param name of the item. @throws Error(kInternal) otherwise, which is a mistake of the tower.
void check_plan(const ItemPlan& plan, const std::string& name);

/// Requires bytes that fit num_rows x row_width elements, and returns these.
/// @param name of the item. @param rows what a row is called.
ConstTensorView check_matrix(const RowMatrix& matrix, const std::string& name, const char* rows);
ConstTensorView check_matrix(const PixelBytes& pixels, const std::string& name, const char* rows);

}  // namespace fovea
