#pragma once

#include "media/resize/leaf.h"
#include "media/resize/resize.h"

namespace fovea::media {

/// The inner loops of an instruction set.
/// @throws Error(kUnsupported) if this machine lacks it.
[[nodiscard]] const ResizeLeaf& choose_leaf(ResizeIsa isa);

}  // namespace fovea::media
