#pragma once

#include "media/formats/decoders.h"

namespace fovea::media {

/// Reads what a HEIF file says about its items, before libheif does, and refuses what would cost
/// more memory or time than the file and its size let expect: items that share bytes, so that a
/// small file becomes large, and images that are made of images that are made of others.
/// @throws Error(kCorruptData) for boxes that do not fit into each other, that stand twice where
/// there can be one, or whose items are longer than twice the file; Error(kUnsupported) for an
/// image that is neither coded with HEVC nor a grid of such images.
/// @return whether the image is a grid.
/// Source: ISO/IEC 14496-12, 8.11 (boxes pitm, iloc, iinf, iref); ISO/IEC 23008-12, 6.6.2.3 (grid).
bool check_heic_items(const EncodedImage& source);

}  // namespace fovea::media
