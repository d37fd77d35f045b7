// The units of an item and their bytes, and the answers of a family that takes still images alone.
#include "fovea/tower/models/item_processor.h"

#include <algorithm>
#include <iterator>

#include "core/check.h"

namespace fovea {

ItemUnits ItemSpec::units_on(int path) const noexcept {
  const auto index = static_cast<std::size_t>(path);
  const bool is_cut = std::ranges::any_of(units, [](const ItemUnits& of) { return of.count > 0; });
  if (is_cut || path_tokens[index] == 0) return units[index];
  return {1, input_rows, path_tokens[index]};
}

namespace {

/// Patches of a member of a team. Those of a token lie together.
std::int64_t patches_of(const TeamPart& part, const ItemUnits& unit) noexcept {
  return unit.rows == 0 ? 0 : unit.patches / unit.rows * part.of(unit.rows).count;
}

}  // namespace

std::optional<int> ItemShare::only_path_of(const ItemSpec& spec) noexcept {
  for (int path = 0; path < kMaxPaths; ++path) {
    const ItemUnits units = spec.units_on(path);
    if (units.count > 0 && units.count * units.rows == spec.out_rows) return path;
  }
  return std::nullopt;
}

std::optional<int> ItemShare::path_of(const ItemSpec& spec) noexcept {
  const std::optional<int> path = only_path_of(spec);
  return path && spec.units_on(*path).count > 1 ? path : std::nullopt;
}

ItemSpec ItemShare::spec_of(const ItemSpec& item) const {
  if (units.count == 0) return item;
  const std::optional<int> path = only_path_of(item);
  FOVEA_CHECK(path, kInternal, "a share of an item with more than one path");
  const auto index = static_cast<std::size_t>(*path);
  const ItemUnits all = item.units_on(*path);
  const ItemUnits own{units.count, part.size > 1 ? patches_of(part, all) : all.patches,
                      part.of(all.rows).count};
  ItemSpec spec = item;
  spec.input_rows = own.count * own.patches;
  spec.out_rows = own.count * own.rows;
  spec.path_tokens[index] = spec.out_rows;
  spec.units[index] = own;
  if (spec.num_seqs > 1) spec.num_seqs = item.num_seqs / all.count * own.count;
  return spec;
}

ItemPart ItemPart::whole(const PreparedItem& item, int path) noexcept {
  return {.item = &item, .path = path, .count = item.plan.spec.units_on(path).count};
}

std::int64_t ItemPart::patches() const noexcept {
  return team.size > 1 ? patches_of(team, units()) : count * units().patches;
}

std::int64_t ItemPart::tokens() const noexcept {
  return team.size > 1 ? team.of(units().rows).count : count * units().rows;
}

std::int64_t ItemPart::seqs() const noexcept {
  const std::int64_t all = plan().spec.num_seqs;
  return all <= 1 ? all : all * count / units().count;
}

std::span<const std::uint8_t> ItemPart::pixels() const noexcept {
  const std::span<const std::uint8_t> here =
      item->on_device.empty() ? std::span(item->pixels) : item->on_device;
  const std::size_t bytes = plan().unit_bytes[static_cast<std::size_t>(path)];
  if (bytes == 0) return here;
  std::size_t begin = static_cast<std::size_t>(first) * bytes;
  for (int before = 0; before < path; ++before) {
    begin += static_cast<std::size_t>(plan().spec.units_on(before).count) *
             plan().unit_bytes[static_cast<std::size_t>(before)];
  }
  begin -= item->first_byte;
  return here.subspan(begin,
                      std::min(static_cast<std::size_t>(count) * bytes, here.size() - begin));
}

std::vector<ItemUnits> units_of(const ItemSpec& spec) {
  std::vector<ItemUnits> units;
  std::ranges::copy_if(spec.units, std::back_inserter(units),
                       [](const ItemUnits& some) { return some.count > 0; });
  if (units.empty()) units.push_back({1, spec.input_rows, spec.out_rows});
  return units;
}

ItemPlan ItemProcessor::plan_video(std::int64_t, std::int64_t, std::int64_t) const {
  FOVEA_CHECK(false, kUnsupported, "the model takes no videos");
}

ItemPlan ItemProcessor::plan_grid(Modality, const std::array<std::int64_t, 3>&) const {
  FOVEA_CHECK(false, kUnsupported, "the model takes images, no pixel values");
}

ItemPlan ItemProcessor::plan_patches(Modality, const std::array<std::int64_t, 3>&,
                                     std::int64_t) const {
  FOVEA_CHECK(false, kUnsupported, "the model takes no pixel values that are on the device");
}

std::vector<std::int64_t> ItemProcessor::sample_frames(std::int64_t, double, double) const {
  FOVEA_CHECK(false, kUnsupported, "the model takes no videos");
}

std::vector<double> ItemProcessor::timestamps(std::span<const double> frame_seconds) const {
  return {frame_seconds.begin(), frame_seconds.end()};
}

void ItemProcessor::fill_pixel_values(const ItemPlan&, const ConstTensorView&,
                                      std::span<std::uint8_t>) const {
  FOVEA_CHECK(false, kUnsupported, "the model takes images, no pixel values");
}

}  // namespace fovea
