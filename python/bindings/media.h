#pragma once

#include <nanobind/nanobind.h>

#include <vector>

#include "fovea/media.h"

namespace fovea::python {

/// Items for a list of Python objects, named "images[0]" and so on unless they are paths:
///   str, os.PathLike     a file, or a directory of frames
///   1-D buffer           an encoded image or a container, for example bytes
///   uint8 [H, W, 3]      pixels; of a video [frames, H, W, 3]. A buffer or a DLPack tensor on the
///                        host
///   (buffer, shape)      the same, with a shape of its own
///   PixelValues          patches as a processor returns them
/// Bytes are not copied unless strides say that they do not lie one after the other: the item keeps
/// the object. Needs the GIL; items may go without it.
/// @param fps of sampled frames, for videos. @param limits of the engine: what encode() refuses for
/// its size is not copied.
/// @throws TypeError that names the item; Error(kInvalidArgument), likewise, for a copy that would
/// be larger than an encoded item may be.
[[nodiscard]] std::vector<MediaItem> media_items(const nanobind::list& objects, Modality modality,
                                                 double fps, const MediaLimits& limits);

/// Adds PixelValues and images_in().
void bind_media(nanobind::module_& module);

}  // namespace fovea::python
