// What items of equal content have in common.
#include "rows/item_facts.h"

namespace fovea {

Embedding facts_of(const Embedding& item) {
  Embedding facts;
  facts.modality = item.modality;
  facts.rows = item.rows;
  facts.width = item.width;
  facts.dtype = item.dtype;
  facts.grid_thw = item.grid_thw;
  facts.retained = item.retained;
  facts.timestamps = item.timestamps;
  facts.source_width_px = item.source_width_px;
  facts.source_height_px = item.source_height_px;
  facts.num_frames = item.num_frames;
  facts.resized_width_px = item.resized_width_px;
  facts.resized_height_px = item.resized_height_px;
  return facts;
}

}  // namespace fovea
