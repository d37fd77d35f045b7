#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "fovea/media.h"
#include "fovea/options.h"

namespace fovea {

// Whether items are what their source says, before anything is read or decoded. Each function
// throws Error(kInvalidArgument).

/// Whether an item is rows already, which no tower has to compute.
[[nodiscard]] inline bool is_finished(const MediaItem& media) noexcept {
  return media.source == MediaItem::Source::kRows || media.source == MediaItem::Source::kRowBlock;
}

/// The rows of such an item.
[[nodiscard]] inline std::int64_t num_finished_rows(const MediaItem& media) noexcept {
  return media.source == MediaItem::Source::kRowBlock ? media.block.rows : media.num_rows;
}

/// What messages call a frame of an item that was given as encoded frames: "clip[3]".
[[nodiscard]] std::string frame_name(const MediaItem& media, std::size_t frame);

/// Requires the paths or bytes that the source of an item needs: exactly one path of a file, frames
/// or files of them, bytes of what is encoded.
void check_source(const MediaItem& media);

/// Requires a size within the limits, and bytes that fit it, of an item of decoded pixels.
void check_rgb(const MediaItem& media, const MediaLimits& limits);

/// Requires bytes that fit num_rows x row_width elements. @param rows what a row is called.
void check_matrix(const MediaItem& media, const char* rows);

}  // namespace fovea
