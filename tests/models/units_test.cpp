// Units of every family: what an item is cut into, and that its rows are the same bits wherever it
// is cut. Runs on each golden folder that holds a checkpoint.
#include <gtest/gtest.h>

#include <algorithm>
#include <iterator>
#include <random>

#include "fovea/tower/ops/context.h"
#include "graph/capture/forward_cost.h"
#include "models/golden_model.h"
#include "models/host_inputs.h"

namespace fovea {
namespace {

using namespace test;  // NOLINT: the models and items are those of these tests

ItemPart one_unit(const PreparedItem& item, PathId path, std::int64_t unit) {
  return {.item = &item, .path = path, .first = unit, .count = 1};
}

/// Gives a unit the pixels of the first of its path. @return false where it has fewer bytes, since
/// its frame is repeated.
bool repeat_first_unit(PreparedItem& item, PathId path, std::int64_t unit) {
  const auto from = one_unit(item, path, 0).pixels();
  const auto to = one_unit(item, path, unit).pixels();
  if (to.size() != from.size()) return false;
  std::ranges::copy(from, item.pixels.begin() + (to.data() - item.pixels.data()));
  return true;
}

/// The rows of items, written part by part without a manager.
class PartRuns {
 public:
  PartRuns(const GoldenModel& m, std::span<const PreparedItem> items) : m_(m), items_(items) {
    for (const PreparedItem& item : items) rows_.push_back(m.rows_of(item));
  }

  /// One sub-batch of a path: inputs, forward, assembly.
  void run(PathId path, std::span<const ItemPart> parts) {
    GraphCapacity capacity{.items = std::ssize(parts)};
    std::vector<TensorView> out;
    for (const ItemPart& part : parts) {
      capacity.tokens += part.tokens();
      capacity.seqs += part.seqs();
      const auto index = static_cast<std::size_t>(part.item - items_.data());
      out.push_back(m_.view(*part.item, rows_[index]));
    }
    HostInputs inputs(m_.model->inputs(path, capacity));
    inputs.fill([&](InputWriter& w) { m_.model->fill_inputs(path, capacity, parts, w); });
    const Buffer memory =
        m_.device->allocate(measure_forward(*m_.model, *m_.device, path, capacity).arena_bytes);
    const Tensor rows =
        make_tensor(*m_.device, DType::kF32, {capacity.tokens, m_.model->path_width(path)});
    Arena arena(memory.data(), memory.bytes());
    ExecContext ctx{*m_.stream, *m_.kernels, arena, *m_.stream};
    m_.model->forward(ctx, path, capacity, inputs.tensors(), rows.view());
    m_.model->assemble(ctx, path, rows.view(), parts, out);
    m_.stream->synchronize();
  }

  [[nodiscard]] const RowBytes& rows() const noexcept { return rows_; }

 private:
  const GoldenModel& m_;
  std::span<const PreparedItem> items_;
  RowBytes rows_;
};

/// All units of an item on a path, in parts of 1 to `most`.
std::vector<ItemPart> cut(const PreparedItem& item, PathId path, std::uint32_t most,
                          std::mt19937& random) {
  std::vector<ItemPart> parts;
  const std::int64_t all = item.plan.spec.units_on(path).count;
  for (std::int64_t first = 0; first < all; first += parts.back().count) {
    const std::int64_t count = std::min<std::int64_t>(all - first, 1 + random() % most);
    parts.push_back({.item = &item, .path = path, .first = first, .count = count});
  }
  return parts;
}

/// Cuts all items, and deals the parts of each path out to sub-batches of 1 to 4, in random order.
std::vector<std::vector<ItemPart>> random_batches(std::span<const PreparedItem> items,
                                                  PathId num_paths, std::uint32_t most,
                                                  std::mt19937& random) {
  std::vector<std::vector<ItemPart>> batches;
  for (PathId path = 0; path < num_paths; ++path) {
    std::vector<ItemPart> parts;
    for (const PreparedItem& item : items) {
      std::ranges::copy(cut(item, path, most, random), std::back_inserter(parts));
    }
    std::ranges::shuffle(parts, random);
    for (auto next = parts.begin(); next != parts.end();) {
      const auto end = next + std::min<std::ptrdiff_t>(parts.end() - next, 1 + random() % 4);
      batches.emplace_back(next, end);
      next = end;
    }
  }
  std::ranges::shuffle(batches, random);
  return batches;
}

class Units : public GoldenModelTest {};

TEST_P(Units, OfAnItemAreAllOfIt) {
  for (const PreparedItem& item : random_items(m_)) {
    const ItemSpec& spec = item.plan.spec;
    std::int64_t patches = 0;
    for (std::size_t path = 0; path < kMaxPaths; ++path) {
      const ItemUnits& units = spec.units[path];
      patches += units.count * units.patches;
      EXPECT_EQ(units.count * units.rows, spec.path_tokens[path]) << path;
    }
    EXPECT_EQ(patches, spec.input_rows);
  }
}

TEST_P(Units, ShareThePixelsOfTheirItem) {
  for (const PreparedItem& item : random_items(m_)) {
    const std::uint8_t* next = item.pixels.data();
    for (PathId path = 0; path < m_.num_paths(); ++path) {
      for (std::int64_t unit = 0; unit < item.plan.spec.units_on(path).count; ++unit) {
        const ItemPart part = one_unit(item, path, unit);
        EXPECT_EQ(part.pixels().data(), next) << "path " << path << ", unit " << unit;
        next += part.pixels().size();
      }
    }
    EXPECT_EQ(next, item.pixels.data() + item.pixels.size());
  }
}

// What lets a unit be encoded once for all that have its bytes.
TEST_P(Units, HaveInputsThatFollowFromTheirBytes) {
  for (PreparedItem& item : random_items(m_)) {
    for (PathId path = 0; path < m_.num_paths(); ++path) {
      const auto inputs_of = [&](std::int64_t unit) {
        const std::vector<ItemPart> parts{one_unit(item, path, unit)};
        const GraphCapacity capacity{
            .tokens = parts[0].tokens(), .items = 1, .seqs = parts[0].seqs()};
        HostInputs inputs(m_.model->inputs(path, capacity));
        inputs.fill([&](InputWriter& w) { m_.model->fill_inputs(path, capacity, parts, w); });
        std::vector<std::byte> bytes;
        const NamedTensors tensors = inputs.tensors();
        for (const auto& [name, view] : tensors.entries()) {
          bytes.insert(bytes.end(), view.data, view.data + view.bytes());
        }
        return bytes;
      };
      const std::int64_t count = item.plan.spec.units_on(path).count;
      for (std::int64_t unit = 1; unit < count; ++unit) {
        if (!repeat_first_unit(item, path, unit)) continue;
        EXPECT_EQ(inputs_of(unit), inputs_of(0)) << "path " << path << ", unit " << unit;
      }
    }
  }
}

// Of items with one path whose rows are those of their units, one after the other.
TEST_P(Units, HaveRowsThatDoNotDependOnOtherUnits) {
  if (m_.num_paths() > 1) return;
  GraphManager manager(*m_.model, *m_.device, {});
  for (PreparedItem& item : random_items(m_)) {
    if (item.plan.spec.path_tokens.front() != item.plan.spec.out_rows) continue;
    const PreparedItem* const items[]{&item};
    const std::vector<std::byte> before = m_.run(manager, items, true).front();
    item.pixels.back() ^= 0xff;  // of the last unit
    const std::vector<std::byte> after = m_.run(manager, items, true).front();
    const auto count = static_cast<std::size_t>(item.plan.spec.units.front().count);
    const std::size_t others = before.size() / count * (count - 1);
    EXPECT_TRUE(std::equal(before.begin(), before.begin() + static_cast<std::ptrdiff_t>(others),
                           after.begin()));
    EXPECT_NE(before, after);
  }
}

// Units are cut anywhere, run in any order, and share sub-batches with those of other items.
TEST_P(Units, HaveTheSameBitsWhereverItemsAreCut) {
  constexpr std::int64_t kCheapRows = 1024;
  std::mt19937 random(2);
  std::vector<PreparedItem> items = random_items(m_);
  const auto add_cheap = [&](const ItemPlan& plan) {
    if (plan.spec.input_rows <= kCheapRows) items.push_back(random_item(plan, random));
  };
  const auto side = [&] { return 28 + static_cast<std::int64_t>(random() % 200); };
  for (int i = 0; i < 4; ++i) {
    add_cheap(processor().plan_image(side(), side()));
    if (m_.takes_videos()) {
      add_cheap(processor().plan_video(1 + static_cast<std::int64_t>(random() % 12), 64, 48));
    }
  }
  PartRuns whole(m_, items);
  for (PathId path = 0; path < m_.num_paths(); ++path) {
    for (const ItemPart& part : whole_items(items, path)) whole.run(path, {&part, 1});
  }
  constexpr std::uint32_t kMostUnits = 3;
  PartRuns runs(m_, items);
  for (const std::vector<ItemPart>& parts :
       random_batches(items, m_.num_paths(), kMostUnits, random)) {
    runs.run(parts.front().path, parts);
  }
  EXPECT_EQ(runs.rows(), whole.rows());
}

// Through the manager, which cuts, and runs equal units once.
TEST_P(Units, HaveTheSameBitsPackedAndReused) {
  std::vector<PreparedItem> storage = random_items(m_);
  std::int64_t repeated = 0;
  for (PreparedItem& item : storage) {
    for (PathId path = 0; path < m_.num_paths(); ++path) {
      for (std::int64_t unit = 2; unit < item.plan.spec.units_on(path).count; unit += 2) {
        repeated += repeat_first_unit(item, path, unit) ? 1 : 0;
      }
    }
  }
  const std::vector<const PreparedItem*> items = pointers(storage);
  const RowBytes alone = m_.run_alone(items);
  GraphManagerOptions options;
  options.max_num_batched_tokens = m_.num_paths() > 1 ? 1088 : 512;
  options.missing = MissingGraph::kCapture;
  options.packing = PackingPolicy::kUnits;
  GraphManager manager(*m_.model, *m_.device, options);
  manager.fill_memory_with_nan();  // shows rows that nobody wrote
  EXPECT_EQ(m_.run(manager, items, false), alone);
  EXPECT_EQ(manager.stats().units_reused, repeated);
}

INSTANTIATE_TEST_SUITE_P(Models, Units, ::testing::ValuesIn(supported_golden_models()),
                         folder_name);

}  // namespace
}  // namespace fovea
