#pragma once

#include <cstddef>

#include "media/resize/leaf.h"

namespace fovea::media {

/// The vertical pass of a row in blocks of bytes; the last one overlaps the one before it if the
/// row is not a multiple of a block. Rows below a block are those of the portable leaf. Include
/// only from the unit of an instruction set; Block is a type of an unnamed namespace:
///   kBytes                          of a block
///   filter<kTwoPlanes>(args, offset)  one block of the row, with weights of one plane or of two
template <class Block>
void filter_row_in_blocks(const VerticalArgs& args) {
  const auto filter_with = [&](const auto& filter) {
    for (std::size_t offset = 0; offset + Block::kBytes <= args.row_bytes; offset += Block::kBytes)
      filter(offset);
    if (args.row_bytes % Block::kBytes != 0) filter(args.row_bytes - Block::kBytes);
  };
  if (args.row_bytes < Block::kBytes)
    kPortableLeaf.vertical(args);
  else if (args.axis->planes[1] != nullptr)
    filter_with([&](std::size_t offset) { Block::template filter<true>(args, offset); });
  else
    filter_with([&](std::size_t offset) { Block::template filter<false>(args, offset); });
}

}  // namespace fovea::media
