#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "models/encoder_graph_model.h"
#include "models/qwen3_vl/config.h"

namespace fovea::qwen3_vl {

/// Resized size, grid and counts of a still picture. @throws Error(kInvalidArgument) for side
/// ratios the model refuses. Source: Qwen and GLM specification, sections 3.3 and 7.
[[nodiscard]] ItemPlan plan_image(const Config& config, const PreprocessConfig& preprocess,
                                  std::int64_t width_px, std::int64_t height_px);

/// As plan_image for `num_frames` sampled frames; an odd last frame is repeated.
[[nodiscard]] ItemPlan plan_video(const Config& config, const PreprocessConfig& preprocess,
                                  std::int64_t num_frames, std::int64_t width_px,
                                  std::int64_t height_px);

/// Plan of pixel values with this grid: every patch is kept as a tile of its own, of one frame for
/// a picture and of temporal_patch_size frames for a video. A repeated last frame counts as a
/// frame.
/// @throws Error(kInvalidArgument) for sides that are no multiples of spatial_merge_size, a picture
/// of more than one temporal patch, and more pixels than a tower's input can address.
[[nodiscard]] ItemPlan plan_grid(const Config& config, Modality modality,
                                 const std::array<std::int64_t, 3>& grid);

/// Frames of a video file at about `target_fps`, at least min_frames and at most max_frames of
/// them, spread evenly from the first to the last, rounded half to even. An unknown rate counts
/// as 24. Source: Qwen and GLM specification, section 8.
[[nodiscard]] std::vector<std::int64_t> sample_frames(const PreprocessConfig& preprocess,
                                                      std::int64_t total_frames, double video_fps,
                                                      double target_fps);

/// Resizes every frame into `out`: plan.num_frames pictures of the resized size, interleaved RGB,
/// one after the other.
void fill_pixels(const PreprocessConfig& preprocess, const ItemPlan& plan,
                 std::span<const RgbView> frames, std::span<std::uint8_t> out);

/// Writes the patch rows of one item in merge-block order, for the ops patchify, rope_angles and
/// add_positions_bilinear.
/// @param pixel_offset byte at which the item's pixels start in the batch's pixel block.
/// @param positions [patches, 4]: y, x, grid height, grid width.
/// @param sources   [patches, 4]: byte offset, row stride, frame stride, 0.
/// Source: Qwen and GLM specification, sections 3.5 and 4.1.
void write_patch_rows(const Config& config, const ItemPlan& plan, std::int64_t pixel_offset,
                      std::span<std::int32_t> positions, std::span<std::int32_t> sources);

}  // namespace fovea::qwen3_vl
