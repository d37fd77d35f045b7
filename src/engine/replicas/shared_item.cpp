// One item in shares.
#include "engine/replicas/shared_item.h"

#include <algorithm>
#include <utility>

namespace fovea {

namespace {

RowCopy place_rows(const TowerItem& item, std::int64_t width) {
  RowCopy rows;
  rows.rows = item.spec().out_rows;
  rows.width = width;
  return item.target.place(rows);
}

}  // namespace

SharedItem::SharedItem(const TowerItem& item, std::int64_t width)
    : result_(*item.target.result),
      target_(item.target),
      keep_(item.keep),
      place_(place_rows(item, width)),
      first_unit_(item.share.units.first) {
  const ItemSpec& spec = item.prepared->plan.spec;
  unit_rows_ = spec.units_on(ItemShare::only_path_of(spec).value()).rows;
}

TowerItem SharedItem::add(const PreparedItem& prepared, const ItemShare& share) {
  Part& part = parts_.emplace_back();
  if (target_.block != nullptr) part.block = *target_.block;
  const TeamPart::Tokens of_unit = share.part.of(unit_rows_);  // all rows, unless it is a part
  const std::int64_t first = (share.units.first - first_unit_) * unit_rows_ + of_unit.first;
  part.block.data = place_.to + static_cast<std::size_t>(first) * place_.to_stride;
  part.block.rows = share.units.count * of_unit.count;
  part.block.row_stride_bytes = static_cast<std::int64_t>(place_.to_stride);
  part.block.dtype = target_.dtype;
  return {.prepared = &prepared,
          .target = {&part.known, &part.block, target_.dtype},
          .keep = keep_,
          .share = share,
          .keep_at = first};
}

void SharedItem::end_store() {
  if (keep_ != nullptr) std::exchange(keep_, nullptr)->end_store();
}

void SharedItem::finish() {
  const auto is = [](GraphUse use) {
    return [use](const Part& part) { return part.known.graph == use; };
  };
  const bool all_hit = std::ranges::all_of(parts_, is(GraphUse::kHit));
  const bool all_miss = std::ranges::all_of(parts_, is(GraphUse::kMiss));
  result_.graph = all_hit ? GraphUse::kHit : all_miss ? GraphUse::kMiss : GraphUse::kPartial;
  for (const auto& [known, block] : parts_) {
    result_.units_reused += known.units_reused;
    result_.times.pack_ms += known.times.pack_ms;
    result_.times.encode_ms += known.times.encode_ms;
    result_.times.output_ms += known.times.output_ms;
  }
}

}  // namespace fovea
