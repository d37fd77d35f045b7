// Packing of units, of which items are made: sub-batches can end between any two of them.
//
// Units of an item are equal and many of them are small beside a budget, so filling up budget after
// budget wastes next to nothing, and what is left to choose is how the last part of a path runs: in
// the smallest budget that holds it, or in the next smaller one that is full and what is left then.
#include <algorithm>
#include <cstddef>
#include <span>
#include <vector>

#include "graph/packing.h"

namespace fovea {

namespace {

/// Whether one cost is below another by more than sums of them are rounded by.
bool is_less(double cost, double other) { return cost < other * (1 - 1e-9); }

/// Packs the units of one path after the other.
class UnitPacker {
 public:
  /// Packs into `packing`, behind what is there. All must outlive the packer.
  UnitPacker(std::span<const ItemSpec> items, const PackingLimits& limits,
             const PackingCosts& costs, Packing& packing)
      : items_(items), limits_(limits), costs_(costs), packing_(packing) {}

  void pack(PathId path) {
    path_ = static_cast<std::size_t>(path);
    for (const std::int64_t index : packing_.sorted) {
      if (at(index).path_tokens[path_] > 0) add_units(index);
    }
    close();
  }

  /// Items without tokens, which no path brings.
  void pack_empty() {
    for (const std::int64_t index : packing_.sorted) {
      if (total_tokens(at(index)) > 0) continue;
      if (!open_.has_room_for(at(index), limits_)) close();
      open_.add(at(index));
      packing_.order.push_back({.item = index});
    }
    close();
  }

 private:
  /// A place between two units of the open sub-batch.
  struct Cut {
    std::size_t entry = 0;    // of packing_.order
    std::int64_t units = 0;   // of that entry, before the place
    std::int64_t tokens = 0;  // of the units between the cut before and this one
  };
  /// The best way to run units.
  struct Choice {
    double cost = 0;
    Cut end = {};  // of the first of several sub-batches; no tokens: one takes all
  };

  [[nodiscard]] const ItemSpec& at(std::int64_t index) const {
    return items_[static_cast<std::size_t>(index)];
  }
  [[nodiscard]] ItemUnits units_of(std::int64_t index) const {
    return at(index).units_on(static_cast<PathId>(path_));
  }

  /// The sizes that some units of an item add to a sub-batch.
  [[nodiscard]] ItemSpec spec_of(std::int64_t index, std::int64_t count) const {
    const ItemUnits units = units_of(index);
    ItemSpec spec;
    spec.num_seqs = at(index).num_seqs;
    if (spec.num_seqs > 1) spec.num_seqs = spec.num_seqs * count / units.count;
    spec.path_tokens[path_] = count * units.rows;
    return spec;
  }

  void add_units(std::int64_t index) {
    const std::int64_t all = units_of(index).count;
    for (std::int64_t first = 0; first < all;) {
      std::int64_t taken = room_for(index, all - first);
      if (taken == 0 && open_.count > 0) {
        close();
        continue;
      }
      taken = std::max<std::int64_t>(taken, 1);  // of a unit that fits nowhere
      open_.add(spec_of(index, taken));
      packing_.order.push_back({index, static_cast<PathId>(path_), first, taken});
      first += taken;
    }
  }

  /// How many units of an item may join, of those that are left.
  [[nodiscard]] std::int64_t room_for(std::int64_t index, std::int64_t left) const {
    const auto has_room = [&](std::int64_t count) {
      return count > 0 && open_.has_room_for(spec_of(index, count), limits_);
    };
    const std::int64_t tokens = limits_.path_budgets[path_].back() - open_.load[path_];
    std::int64_t count = std::min(left, tokens / units_of(index).rows);
    if (has_room(count)) return count;
    const std::int64_t seqs = std::max<std::int64_t>(spec_of(index, 1).num_seqs, 1);
    count = std::min(count, (limits_.max_frames - open_.seqs) / seqs);
    return has_room(count) ? count : 0;
  }

  /// Ends the open sub-batch, in parts where these are cheaper.
  void close() {
    while (open_.count > 0) {
      const auto begin = static_cast<std::size_t>(open_.begin);
      const Cut end = choose({.entry = begin}, open_.load[path_]).end;
      if (end.tokens > 0) open_ = sum_of(begin, divide(end));
      open_.close(limits_);
      packing_.batches.push_back(open_);
      open_ = sum_of(begin + static_cast<std::size_t>(open_.count), packing_.order.size());
    }
  }

  /// A sub-batch of these entries.
  [[nodiscard]] SubBatch sum_of(std::size_t begin, std::size_t end) const {
    SubBatch batch{.begin = static_cast<std::int64_t>(begin)};
    for (; begin < end; ++begin) {
      const PackedItem& entry = packing_.order[begin];
      batch.add(spec_of(entry.item, entry.units));
    }
    return batch;
  }

  /// Makes a cut lie between two entries. @return the one behind it.
  std::size_t divide(const Cut& cut) {
    if (cut.units == 0) return cut.entry;
    PackedItem& before = packing_.order[cut.entry];
    PackedItem behind = before;
    before.units = cut.units;
    behind.first_unit += cut.units;
    behind.units -= cut.units;
    const auto place = packing_.order.begin() + static_cast<std::ptrdiff_t>(cut.entry) + 1;
    packing_.order.insert(place, behind);
    return cut.entry + 1;
  }

  /// The place up to which the units from another place on fit into a budget.
  [[nodiscard]] Cut fill(const Cut& from, std::int64_t budget) const {
    Cut cut{.entry = from.entry, .units = from.units};
    for (; cut.entry < packing_.order.size(); ++cut.entry, cut.units = 0) {
      const PackedItem& entry = packing_.order[cut.entry];
      const std::int64_t rows = units_of(entry.item).rows;
      const std::int64_t left = entry.units - cut.units;
      const std::int64_t fitting = std::min(left, (budget - cut.tokens) / rows);
      cut.tokens += fitting * rows;
      cut.units += fitting;
      if (fitting < left) break;
    }
    return cut;
  }

  /// How the units from a place to the end run for the least cost. @param tokens of them.
  [[nodiscard]] Choice choose(const Cut& from, std::int64_t tokens) const {
    const std::vector<std::int64_t>& budgets = limits_.path_budgets[path_];
    const PathCost& costs = costs_.paths[path_];
    const auto fitting = std::ranges::lower_bound(budgets, tokens);
    if (tokens == 0 || fitting == budgets.end()) return {};
    const auto index = static_cast<std::size_t>(fitting - budgets.begin());
    const Choice together{costs.replay[index].at(tokens)};
    // A budget below half of the load would leave more to the rest than it takes.
    if (index == 0 || budgets[index - 1] * 2 < tokens) return together;
    const Cut end = fill(from, budgets[index - 1]);
    if (end.tokens == 0) return together;
    const Choice rest = choose(end, tokens - end.tokens);
    const Choice apart{costs.replay[index - 1].at(end.tokens) + rest.cost, end};
    return apart.cost < kWorthMoreRuns * together.cost ? apart : together;
  }

  std::span<const ItemSpec> items_;
  const PackingLimits& limits_;
  const PackingCosts& costs_;
  Packing& packing_;
  std::size_t path_ = 0;
  SubBatch open_;  // of the last entries of packing_.order
};

/// The cost of units that fill whatever budget is the cheapest per token: no packing has less.
double least_cost(std::span<const ItemSpec> items, const PackingLimits& limits,
                  const PackingCosts& costs) {
  double cost = 0;
  for (std::size_t path = 0; path < limits.path_budgets.size(); ++path) {
    std::int64_t tokens = 0;
    for (const ItemSpec& item : items) tokens += item.path_tokens[path];
    double price = costs.paths[path].eager_per_token;
    for (std::size_t i = 0; i < limits.path_budgets[path].size(); ++i) {
      const std::int64_t budget = limits.path_budgets[path][i];
      if (budget == 0) continue;
      price = std::min(price, costs.paths[path].replay[i].at(budget) / static_cast<double>(budget));
    }
    cost += price * static_cast<double>(tokens);
  }
  return cost;
}

/// Whole items in the order of their sizes, so that those of a replay are alike: by the greedy rule
/// that costs less.
void pack_in_order(std::span<const ItemSpec> items, const PackingLimits& limits,
                   const PackingCosts& costs, Packing& packing) {
  pack_greedy(items, limits, packing, PackingPolicy::kGreedyFill);
  const double fewest_runs = total_cost(packing, limits, costs);
  pack_greedy(items, limits, packing, PackingPolicy::kGreedy);
  if (total_cost(packing, limits, costs) < kWorthMoreRuns * fewest_runs) return;
  pack_greedy(items, limits, packing, PackingPolicy::kGreedyFill);
}

void pack_cut(std::span<const ItemSpec> items, const PackingLimits& limits,
              const PackingCosts& costs, Packing& packing) {
  sort_by_tokens(items, packing.sorted);
  packing.order.clear();
  packing.batches.clear();
  UnitPacker packer(items, limits, costs, packing);
  for (std::size_t path = 0; path < limits.path_budgets.size(); ++path) {
    packer.pack(static_cast<PathId>(path));
  }
  packer.pack_empty();
}

}  // namespace

void pack_units(std::span<const ItemSpec> items, const PackingLimits& limits,
                const PackingCosts& costs, Packing& packing) {
  const auto is_cut = [](const ItemSpec& item) {
    return std::ranges::any_of(item.units, [](const ItemUnits& some) { return some.count > 1; });
  };
  if (std::ranges::none_of(items, is_cut)) return pack_in_order(items, limits, costs, packing);
  pack_cut(items, limits, costs, packing);
  const double cut = total_cost(packing, limits, costs);
  if (!is_less(least_cost(items, limits, costs), cut)) return;
  pack_in_order(items, limits, costs, packing);
  if (!is_less(total_cost(packing, limits, costs), cut)) pack_cut(items, limits, costs, packing);
}

}  // namespace fovea
