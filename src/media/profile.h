#pragma once

#include <cstdint>

#include "fovea/options.h"

namespace fovea::media {

/// Which transparency is composited on the background. All other transparency is ignored: the
/// colours under it are taken as they are stored.
enum class Compositing : std::uint8_t {
  kNone,
  kRgba,   ///< of images that Pillow opens as RGBA: RGBA, and 16-bit grey with alpha
  kEvery,  ///< of these, of 8-bit grey with alpha, and by tRNS of palette, grey and RGB
};

/// The treatment that a profile gives an encoded image.
struct ProfileRules {
  bool turns_upright;  ///< applies the orientation of EXIF or XMP
  Compositing compositing;
};

/// Source: docs/reference/image_resize.md, "Transparency".
[[nodiscard]] constexpr ProfileRules rules_of(MediaProfile profile) noexcept {
  switch (profile) {
    case MediaProfile::kVllm: return {true, Compositing::kEvery};
    case MediaProfile::kVllm023: return {false, Compositing::kRgba};
    case MediaProfile::kTransformers: return {true, Compositing::kNone};
    case MediaProfile::kSglang: return {false, Compositing::kNone};
  }
  return {true, Compositing::kEvery};
}

}  // namespace fovea::media
