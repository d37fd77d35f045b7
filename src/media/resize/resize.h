#pragma once

#include <cstdint>
#include <span>

#include "fovea/tower/core/margins.h"

namespace fovea::media {

/// The library whose fixed-point arithmetic is reproduced, byte for byte.
/// Source: docs/reference/image_resize.md, "Resize".
enum class ResizeEngine : std::uint8_t {
  kPillow,       ///< 22-bit weights
  kTorchvision,  ///< int16 weights, precision chosen per axis
};

enum class ResizeFilter : std::uint8_t { kBilinear, kBicubic, kLanczos };

/// Instruction set of the inner loops; all give equal bytes.
enum class ResizeIsa : std::uint8_t { kBest, kPortable, kAvx2, kAvx512, kNeon };

struct ResizeArgs {
  std::span<const std::uint8_t> src;  ///< src_height_px * src_width_px * 3, interleaved RGB
  std::int64_t src_width_px;
  std::int64_t src_height_px;
  std::span<std::uint8_t> dst;  ///< dst_height_px * dst_width_px * 3; must not overlap src
  std::int64_t dst_width_px;
  std::int64_t dst_height_px;
  ResizeEngine engine;
  ResizeFilter filter;
  ResizeIsa isa = ResizeIsa::kBest;  ///< tests compare them
  /// The part of the source that the result leaves out, as Pillow's resize(box=...) with its
  /// filters: pixels that are only partly inside count in full where a filter reaches them.
  Margins src_margins = {};
};

/// Antialiased separable resize of 8-bit RGB: horizontal pass, then vertical, rounded and clipped
/// to bytes between the two; a pass whose size does not change is skipped. With kPillow the
/// vertical pass comes first for images more than 100 times as high as wide that lose height, as in
/// Pillow 12.2 and later. Runs on the calling thread and checks its interrupt between rows. Memory
/// beside the arguments: a few rows, and the filter weights.
/// @throws Error(kInvalidArgument) if a side is < 1 or > 2^24, or a span has the wrong size;
/// Error(kUnsupported) for an instruction set this machine lacks.
void resize_rgb(const ResizeArgs& args);

}  // namespace fovea::media
