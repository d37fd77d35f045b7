// Equal units among those of a run. Digests only say which are worth comparing.
#include "graph/unit_reuse.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <functional>
#include <string_view>

namespace fovea {

namespace {

std::size_t digest_of(std::span<const std::uint8_t> bytes) {
  return std::hash<std::string_view>()({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
}

/// A digest of a few bytes from all over a unit.
std::size_t sample_digest(std::span<const std::uint8_t> bytes) {
  constexpr std::size_t kWord = 8;
  constexpr std::size_t kWords = 32;
  if (bytes.size() <= kWord * kWords) return digest_of(bytes);
  std::array<std::uint8_t, kWord * kWords> sample;
  const std::size_t step = (bytes.size() - kWord) / (kWords - 1);
  for (std::size_t i = 0; i < kWords; ++i) {
    std::memcpy(sample.data() + i * kWord, bytes.data() + i * step, kWord);
  }
  return digest_of(sample);
}

}  // namespace

void UnitReuse::clear() noexcept {
  items_ = {};
  shares_ = {};
  copies_.clear();
  copied_.clear();
}

ItemPart UnitReuse::part(const Unit& unit) const noexcept {
  return {.item = items_[unit.item], .path = unit.path, .first = unit.index, .count = 1};
}

void UnitReuse::find(std::span<const PreparedItem* const> items, std::span<const ItemShare> shares,
                     std::size_t num_paths) {
  clear();
  items_ = items;
  shares_ = shares;
  digests_.clear();
  for (std::size_t item = 0; item < items.size(); ++item) {
    if (!items[item]->on_device.empty()) continue;  // the host does not read it
    for (PathId path = 0; std::cmp_less(path, num_paths); ++path) {
      const ItemShare share = share_of(item);
      const std::int64_t count = share.spec_of(items[item]->plan.spec).units_on(path).count;
      for (std::int64_t index = 0; index < count; ++index) {
        const Unit unit{item, path, share.units.first + index};
        digests_.push_back({sample_digest(part(unit).pixels()), unit});
      }
    }
  }
  std::ranges::sort(digests_);
  for (auto begin = digests_.begin(); begin != digests_.end();) {
    const auto end = std::find_if(
        begin, digests_.end(), [&](const Digest& digest) { return digest.value != begin->value; });
    if (end - begin > 1) compare({begin, end});
    begin = end;
  }
  const auto by_source = [](const Copy& copy) { return std::pair(copy.of, copy.to); };
  std::ranges::sort(copies_, {}, by_source);
  for (const Copy& copy : copies_) copied_.push_back(copy.to);
  std::ranges::sort(copied_);
}

void UnitReuse::compare(std::span<Digest> alike) {
  // Mostly all are equal, and one look at their bytes is enough.
  const Unit first = alike.front().unit;
  const auto others = std::partition(alike.begin() + 1, alike.end(), [&](const Digest& digest) {
    return are_equal(first, digest.unit);
  });
  for (auto copy = alike.begin() + 1; copy != others; ++copy) {
    copies_.push_back({first, copy->unit});
  }
  compare_digests({others, alike.end()});
}

void UnitReuse::compare_digests(std::span<Digest> alike) {
  if (alike.size() < 2) return;
  for (Digest& digest : alike) digest.value = digest_of(part(digest.unit).pixels());
  std::ranges::sort(alike);
  const Digest* source = &alike.front();  // the first unit of its digest
  for (const Digest& digest : alike.subspan(1)) {
    if (digest.value != source->value) {
      source = &digest;
    } else if (are_equal(source->unit, digest.unit)) {
      copies_.push_back({source->unit, digest.unit});
    }
  }
}

bool UnitReuse::are_equal(const Unit& a, const Unit& b) const {
  const ItemPlan& first = items_[a.item]->plan;
  const ItemPlan& second = items_[b.item]->plan;
  const ItemUnits units = first.spec.units_on(a.path);
  const ItemUnits others = second.spec.units_on(b.path);
  const auto size_of = [](const ItemPlan& plan, const ItemUnits& of) {
    // An item that is one unit as a whole may depend on all of its grid.
    return std::array{of.count > 1 ? 0 : plan.grid[0], plan.grid[1], plan.grid[2], of.patches,
                      of.rows};
  };
  return a.path == b.path && first.layout == second.layout &&
         first.resized_width_px == second.resized_width_px &&
         first.resized_height_px == second.resized_height_px &&
         size_of(first, units) == size_of(second, others) &&
         std::ranges::equal(part(a).pixels(), part(b).pixels());
}

bool UnitReuse::is_copy(const Unit& unit) const {
  return std::ranges::binary_search(copied_, unit);
}

std::span<const UnitReuse::Unit> UnitReuse::copies_in(std::size_t item) const {
  return {std::ranges::lower_bound(copied_, item, {}, &Unit::item),
          std::ranges::upper_bound(copied_, item, {}, &Unit::item)};
}

std::int64_t UnitReuse::num_copies(std::size_t item) const { return std::ssize(copies_in(item)); }

ItemSpec UnitReuse::spec(std::size_t item) const {
  ItemSpec spec = share_of(item).spec_of(items_[item]->plan.spec);
  for (const Unit& unit : copies_in(item)) {
    const auto path = static_cast<std::size_t>(unit.path);
    ItemUnits& units = spec.units[path];
    if (units.count == 0) units = spec.units_on(unit.path);  // the whole item is one unit
    if (spec.num_seqs > 1) spec.num_seqs -= spec.num_seqs / units.count;
    spec.path_tokens[path] -= units.rows;
    --units.count;
  }
  return spec;
}

void UnitReuse::append_parts(std::size_t item, PathId path, std::int64_t first, std::int64_t count,
                             std::vector<ItemPart>& parts) const {
  const PreparedItem& prepared = *items_[item];
  std::int64_t index = share_of(item).units.first;
  if (num_copies(item) == 0) {
    parts.push_back({&prepared, path, index + first, count});
    return;
  }
  std::int64_t place = 0;  // among those that are no copies
  bool goes_on = false;    // the unit before is in the last part
  for (; place < first + count; ++index) {
    const bool runs = !is_copy({item, path, index});
    const bool is_wanted = runs && place >= first;
    if (is_wanted && goes_on) ++parts.back().count;
    if (is_wanted && !goes_on) parts.push_back({&prepared, path, index, 1});
    goes_on = is_wanted;
    place += runs ? 1 : 0;
  }
}

std::span<const UnitReuse::Copy> UnitReuse::copies_of(const Unit& unit) const {
  return {std::ranges::lower_bound(copies_, unit, {}, &Copy::of),
          std::ranges::upper_bound(copies_, unit, {}, &Copy::of)};
}

}  // namespace fovea
