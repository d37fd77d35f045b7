#pragma once

#include <nanobind/nanobind.h>

#include <map>
#include <vector>

#include "fovea/error.h"
#include "fovea/media.h"
#include "signals.h"

namespace fovea::python {

/// Errors of items, by their places in a call.
using ItemErrors = std::map<std::size_t, Error>;

/// Items of a call, and errors of those that could not be read before it.
struct GivenItems {
  std::vector<MediaItem> items;
  ItemErrors unreadable;
};

/// How the objects of a call are read.
struct Reading {
  const Call& call;
  const MediaLimits& limits;  ///< of the engine: what encode() refuses for its size is not copied
  double fps = 2.0;           ///< of sampled frames, for videos
};

/// Adds items for a list of Python objects, named "images[0]" and so on unless they are paths:
///   str, os.PathLike     a file, or a directory of frames
///   1-D buffer           an encoded image or a container, for example bytes
///   uint8 [H, W, 3]      pixels; of a video [frames, H, W, 3]. A buffer or a DLPack tensor on the
///                        host
///   (buffer, shape)      the same, with a shape of its own
///   PixelValues          patches as a processor returns them
///   fovea.Error          why an item could not be read
/// Bytes are not copied unless strides say that they do not lie one after the other: the item keeps
/// the object. Needs the GIL, and lets go of it while it copies; items may go without it.
/// @throws TypeError that names the item; Error(kInvalidArgument), likewise, for a copy that would
/// be larger than an encoded item may be.
void add_media_items(const nanobind::list& objects, Modality modality, const Reading& reading,
                     GivenItems& given);

/// Adds PixelValues and images_in().
void bind_media(nanobind::module_& module);

}  // namespace fovea::python
