// One item on several replicas.
#include "engine/replicas/shared_item.h"

#include <algorithm>

namespace fovea {

SharedItem::SharedItem(const TowerItem& item, std::int64_t width, std::span<const ItemShare> pieces)
    : result_(*item.target.result), parts_(pieces.size()), blocks_(pieces.size()) {
  const ItemSpec& spec = item.prepared->plan.spec;
  const RowTarget& target = item.target;
  RowCopy rows;
  rows.rows = spec.out_rows;
  rows.width = width;
  const RowCopy place = target.place(rows);
  const std::int64_t unit_rows = spec.units_on(ItemShare::path_of(spec).value()).rows;
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    const auto first = static_cast<std::size_t>(pieces[i].units.first * unit_rows);
    RowBlock& block = blocks_[i];
    if (target.block != nullptr) block = *target.block;
    block.data = place.to + first * place.to_stride;
    block.rows = pieces[i].units.count * unit_rows;
    block.row_stride_bytes = static_cast<std::int64_t>(place.to_stride);
    block.dtype = target.dtype;
    shares_.push_back({.prepared = item.prepared,
                       .target = {&parts_[i], &block, target.dtype},
                       .share = pieces[i]});
  }
}

void SharedItem::finish() {
  const auto is = [](GraphUse use) {
    return [use](const Embedding& part) { return part.graph == use; };
  };
  const bool all_hit = std::ranges::all_of(parts_, is(GraphUse::kHit));
  const bool all_miss = std::ranges::all_of(parts_, is(GraphUse::kMiss));
  result_.graph = all_hit ? GraphUse::kHit : all_miss ? GraphUse::kMiss : GraphUse::kPartial;
  for (const Embedding& part : parts_) {
    result_.units_reused += part.units_reused;
    result_.times.pack_ms += part.times.pack_ms;
    result_.times.encode_ms += part.times.encode_ms;
    result_.times.output_ms += part.times.output_ms;
  }
}

}  // namespace fovea
