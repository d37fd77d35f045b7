// What every model must do behind the encoder graph protocol. Runs on each golden folder that holds
// a checkpoint; a new model is tested without touching this file.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <random>
#include <set>

#include "device/cpu/cpu_device.h"
#include "fovea/tower/graph/graph_manager.h"
#include "graph/capture/forward_cost.h"
#include "graph/eager_runner.h"
#include "graph/graph_config.h"
#include "graph/input_block.h"
#include "models/host_inputs.h"
#include "models/load_model.h"
#include "ops/cpu/cpu_kernels.h"
#include "support/expect_error.h"
#include "support/golden.h"

namespace fovea {
namespace {

/// A family's golden checkpoint, loaded on the CPU.
struct Loaded {
  checkpoint::HfConfig files;
  std::unique_ptr<Kernels> kernels;
  std::unique_ptr<Device> device;
  std::unique_ptr<Stream> stream;
  std::unique_ptr<EncoderGraphModel> model;
};

Loaded load(const std::string& folder) {
  checkpoint::HfConfig files = checkpoint::read_hf_config(folder);
  auto kernels = make_cpu_kernels(detect_cpu_isa());
  auto device = make_cpu_device(2, *kernels);
  auto stream = device->create_stream();
  auto model = load_model(files, {}, checkpoint::WeightSource::open(folder), *device, *stream);
  return {std::move(files), std::move(kernels), std::move(device), std::move(stream),
          std::move(model)};
}

/// Sizes that every family must take; the sets grow with what a model supports.
const std::vector<std::pair<std::int64_t, std::int64_t>> kSizes{{64, 64},   {320, 240}, {100, 333},
                                                                {640, 480}, {31, 57},   {700, 660}};

bool takes_videos(const EncoderGraphModel& model) {
  const auto& modalities = model.graph_spec().modalities;
  return std::ranges::find(modalities, Modality::kVideo) != modalities.end();
}

PreparedItem random_item(const ItemPlan& plan, std::mt19937& random) {
  PreparedItem item{.plan = plan, .pixels = {}};
  item.pixels.resize(plan.pixel_bytes);
  for (std::uint8_t& byte : item.pixels) byte = static_cast<std::uint8_t>(random());
  return item;
}

std::vector<PreparedItem> random_items(const EncoderGraphModel& model) {
  std::mt19937 random(1);
  std::vector<PreparedItem> items;
  const auto add = [&](const ItemPlan& plan) { items.push_back(random_item(plan, random)); };
  const ItemProcessor& processor = model.processor();
  for (const auto& [width, height] : kSizes) add(processor.plan_image(width, height));
  if (takes_videos(model)) {
    for (const std::int64_t frames : {1, 2, 5}) add(processor.plan_video(frames, 96, 64));
  }
  if (processor.plan_image(96, 64).has_grid_thw) {
    add(processor.plan_grid(Modality::kImage, {1, 6, 4}));
    if (takes_videos(model)) add(processor.plan_grid(Modality::kVideo, {2, 4, 4}));
  }
  return items;
}

using Rows = std::vector<std::vector<std::byte>>;

Rows run(GraphManager& manager, const Loaded& m, std::span<const PreparedItem* const> items,
         bool eager) {
  Rows rows;
  std::vector<TensorView> out;
  for (const PreparedItem* item : items) {
    const Shape shape{item->plan.spec.out_rows, m.model->graph_spec().out_width};
    rows.emplace_back(static_cast<std::size_t>(shape.elements()) * sizeof(float));
    out.push_back({rows.back().data(), DType::kF32, shape});
  }
  for (std::size_t i = 0; i < rows.size(); ++i) out[i].data = rows[i].data();
  eager ? manager.execute_eager(items, out) : manager.execute(items, out);
  return rows;
}

std::vector<const PreparedItem*> pointers(const std::vector<PreparedItem>& items) {
  std::vector<const PreparedItem*> result;
  for (const PreparedItem& item : items) result.push_back(&item);
  return result;
}

/// The rows of items, written part by part without a manager.
class PartRuns {
 public:
  PartRuns(const Loaded& m, std::span<const PreparedItem> items) : m_(m), items_(items) {
    for (const PreparedItem& item : items) {
      const Shape shape{item.plan.spec.out_rows, m.model->graph_spec().out_width};
      rows_.emplace_back(static_cast<std::size_t>(shape.elements()) * sizeof(float));
      out_.push_back({rows_.back().data(), DType::kF32, shape});
    }
  }

  /// One sub-batch of a path: inputs, forward, assembly.
  void run(PathId path, std::span<const ItemPart> parts) {
    GraphCapacity capacity{.items = std::ssize(parts)};
    std::vector<TensorView> out;
    for (const ItemPart& part : parts) {
      capacity.tokens += part.tokens();
      capacity.seqs += part.seqs();
      out.push_back(out_[static_cast<std::size_t>(part.item - items_.data())]);
    }
    test::HostInputs inputs(m_.model->inputs(path, capacity));
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

  [[nodiscard]] const Rows& rows() const noexcept { return rows_; }

 private:
  const Loaded& m_;
  std::span<const PreparedItem> items_;
  Rows rows_;
  std::vector<TensorView> out_;
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

class Conformance : public ::testing::TestWithParam<std::string> {
 protected:
  [[nodiscard]] const ItemProcessor& processor() const { return m_.model->processor(); }

  Loaded m_ = load(GetParam());
};

TEST_P(Conformance, DeclaresAUsableGraphSpec) {
  const GraphSpec& spec = m_.model->graph_spec();
  EXPECT_FALSE(spec.modalities.empty());
  EXPECT_GT(spec.main_width, 0);
  EXPECT_EQ(spec.out_width % spec.main_width, 0) << "the main embedding and whole levels";
  ASSERT_FALSE(spec.paths.empty());
  ASSERT_LE(spec.paths.size(), static_cast<std::size_t>(kMaxPaths));
  std::set<std::string> names;
  for (const PathSpec& path : spec.paths) {
    EXPECT_TRUE(names.insert(path.name).second) << path.name;
    EXPECT_GE(path.unit, 1);
  }
  const BudgetRange range = budget_range(spec, 8192);
  EXPECT_GT(range.min, 0);
  EXPECT_LE(range.min, range.max);
  EXPECT_LE(range.max, 8192);
}

TEST_P(Conformance, RefusesMorePixelsThanOffsetsReach) {
  constexpr std::size_t kMost = std::size_t{1} << 31;
  std::mt19937 random(1);
  const PreparedItem item = random_item(processor().plan_image(640, 480), random);
  const ItemPart whole = ItemPart::whole(item, 0);
  const std::vector<ItemPart> parts(kMost / whole.pixels().size() + 1, whole);
  std::vector<InputWriter::Copy> copies;
  InputWriter writer({}, copies);
  test::expect_error(ErrorCode::kInvalidArgument, "expected at most 2147483647 bytes",
                     [&] { m_.model->fill_inputs(0, {}, parts, writer); });
}

TEST_P(Conformance, PlansAreArithmeticAndAgreeWithThePlanner) {
  const auto planner = plan_model(m_.files, {});
  for (const auto& [width, height] : kSizes) {
    const ItemPlan plan = processor().plan_image(width, height);
    const ItemPlan again = planner->processor().plan_image(width, height);
    EXPECT_EQ(plan.spec.path_tokens, again.spec.path_tokens);
    EXPECT_EQ(plan.grid, again.grid);
    EXPECT_GT(plan.spec.out_rows, 0);
    EXPECT_GT(plan.spec.input_rows, 0);
    EXPECT_GT(plan.pixel_bytes, 0u);
    for (std::size_t path = 0; path < m_.model->graph_spec().paths.size(); ++path) {
      EXPECT_EQ(plan.spec.path_tokens[path] % m_.model->graph_spec().paths[path].unit, 0);
    }
  }
  EXPECT_THROW((void)processor().plan_image(0, 10), Error);
}

TEST_P(Conformance, UnitsOfAnItemAreAllOfIt) {
  for (const PreparedItem& item : random_items(*m_.model)) {
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

TEST_P(Conformance, UnitsShareThePixelsOfTheirItem) {
  const auto num_paths = static_cast<PathId>(m_.model->graph_spec().paths.size());
  for (const PreparedItem& item : random_items(*m_.model)) {
    const std::uint8_t* next = item.pixels.data();
    for (PathId path = 0; path < num_paths; ++path) {
      for (std::int64_t unit = 0; unit < item.plan.spec.units_on(path).count; ++unit) {
        const ItemPart part{.item = &item, .path = path, .first = unit, .count = 1};
        EXPECT_EQ(part.pixels().data(), next) << "path " << path << ", unit " << unit;
        next += part.pixels().size();
      }
    }
    EXPECT_EQ(next, item.pixels.data() + item.pixels.size());
  }
}

// What lets a unit be encoded once for all that have its bytes.
TEST_P(Conformance, InputsOfAUnitFollowFromItsBytes) {
  const auto num_paths = static_cast<PathId>(m_.model->graph_spec().paths.size());
  for (PreparedItem& item : random_items(*m_.model)) {
    for (PathId path = 0; path < num_paths; ++path) {
      const std::int64_t count = item.plan.spec.units_on(path).count;
      const auto inputs_of = [&](std::int64_t unit) {
        const std::vector<ItemPart> parts{{.item = &item, .path = path, .first = unit, .count = 1}};
        const GraphCapacity capacity{.tokens = parts[0].tokens(), .items = 1, .seqs = 1};
        test::HostInputs inputs(m_.model->inputs(path, capacity));
        inputs.fill([&](InputWriter& w) { m_.model->fill_inputs(path, capacity, parts, w); });
        std::vector<std::byte> bytes;
        for (const auto& [name, view] : inputs.tensors().entries()) {
          bytes.insert(bytes.end(), view.data, view.data + view.bytes());
        }
        return bytes;
      };
      for (std::int64_t unit = 1; unit < count; ++unit) {
        const auto pixels = [&](std::int64_t of) {
          return ItemPart{.item = &item, .path = path, .first = of, .count = 1}.pixels();
        };
        if (pixels(unit).size() != pixels(0).size()) continue;  // a frame that is repeated
        const auto begin = item.pixels.begin() + (pixels(unit).data() - item.pixels.data());
        std::ranges::copy(pixels(0), begin);
        EXPECT_EQ(inputs_of(unit), inputs_of(0)) << "path " << path << ", unit " << unit;
      }
    }
  }
}

TEST_P(Conformance, AGridAloneGivesThePlanOfItsImage) {
  const auto expect_same = [&](const ItemPlan& plan) {
    const ItemPlan again = processor().plan_grid(plan.modality, plan.grid);
    EXPECT_EQ(again.modality, plan.modality);
    EXPECT_EQ(again.grid, plan.grid);
    EXPECT_TRUE(again.has_grid_thw);
    EXPECT_EQ(again.layout, PixelLayout::kPatches);
    EXPECT_EQ(again.resized_width_px, plan.resized_width_px);
    EXPECT_EQ(again.resized_height_px, plan.resized_height_px);
    EXPECT_EQ(again.source_width_px, 0);
    EXPECT_EQ(again.spec.input_rows, plan.spec.input_rows);
    EXPECT_EQ(again.spec.out_rows, plan.spec.out_rows);
    EXPECT_EQ(again.spec.num_seqs, plan.spec.num_seqs);
    EXPECT_EQ(again.spec.path_tokens, plan.spec.path_tokens);
    EXPECT_GE(again.pixel_bytes, plan.pixel_bytes);  // a repeated frame may be kept
    EXPECT_LT(again.pixel_bytes, 2 * plan.pixel_bytes + 1);
  };
  if (!processor().plan_image(64, 64).has_grid_thw) {
    test::expect_error(ErrorCode::kUnsupported, "no pixel values", [&] {
      (void)processor().plan_grid(Modality::kImage, {1, 4, 4});
    });
    test::expect_error(ErrorCode::kUnsupported, "no pixel values",
                       [&] { processor().fill_pixel_values({}, {}, {}); });
    return;
  }
  for (const auto& [width, height] : kSizes) expect_same(processor().plan_image(width, height));
  if (takes_videos(*m_.model)) {
    for (const std::int64_t frames : {1, 2, 5}) expect_same(processor().plan_video(frames, 96, 64));
  }
  constexpr std::int64_t kHuge = std::int64_t{1} << 62;
  for (const std::array<std::int64_t, 3>& grid :
       {std::array<std::int64_t, 3>{0, 4, 4}, {1, 0, 4}, {1, 4, -4}, {1, kHuge, kHuge}}) {
    test::expect_error(ErrorCode::kInvalidArgument, "grid_thw",
                       [&] { (void)processor().plan_grid(Modality::kVideo, grid); });
  }
}

TEST_P(Conformance, BuffersGrowWithCapacityAndHaveUniqueNames) {
  const auto num_paths = static_cast<PathId>(m_.model->graph_spec().paths.size());
  for (PathId path = 0; path < num_paths; ++path) {
    const std::int64_t unit = m_.model->graph_spec().paths[static_cast<std::size_t>(path)].unit;
    const InputLayout small(m_.model->inputs(path, {2 * unit, 1, 1}));
    const InputLayout large(m_.model->inputs(path, {64 * unit, 8, 8}));
    EXPECT_LT(small.bytes(), large.bytes());
    EXPECT_EQ(small.decls().size(), large.decls().size());
    EXPECT_GT(m_.model->path_width(path), 0);
  }
}

TEST_P(Conformance, WorkGrowsWithTokensAndPlannerCountsTheSame) {
  const auto planner = plan_model(m_.files, {});
  const auto num_paths = static_cast<PathId>(m_.model->graph_spec().paths.size());
  for (PathId path = 0; path < num_paths; ++path) {
    const std::int64_t unit = m_.model->graph_spec().paths[static_cast<std::size_t>(path)].unit;
    const ForwardCost small = measure_forward(*m_.model, *m_.device, path, {unit * 16, 16, 16});
    const ForwardCost large = measure_forward(*m_.model, *m_.device, path, {unit * 32, 32, 32});
    EXPECT_GT(small.flops, 0);
    EXPECT_GT(large.flops, small.flops);
    EXPECT_GE(large.arena_bytes, small.arena_bytes);
    EXPECT_EQ(measure_forward(*planner, *m_.device, path, {unit * 16, 16, 16}).flops, small.flops);
  }
}

// The one property everything rests on: an item's rows are the same bits alone or packed, eager or
// replayed, whatever budgets there are and whatever the memory held before.
TEST_P(Conformance, RowsAreTheSameBitsHoweverTheyAreRun) {
  const std::vector<PreparedItem> storage = random_items(*m_.model);
  const std::vector<const PreparedItem*> items = pointers(storage);
  Rows alone;
  {
    GraphManager manager(*m_.model, *m_.device, {});
    for (const PreparedItem* item : items) {
      alone.push_back(std::move(run(manager, m_, {&item, 1}, true).front()));
    }
  }
  const std::int64_t top = m_.model->graph_spec().paths.size() > 1 ? 1088 : 512;
  for (const std::int64_t largest : {top / 4, top, 4 * top}) {
    SCOPED_TRACE(largest);
    GraphManagerOptions options;
    options.max_num_batched_tokens = largest;
    options.missing = MissingGraph::kCapture;
    GraphManager manager(*m_.model, *m_.device, options);
    EXPECT_EQ(run(manager, m_, items, true), alone) << "eager, packed";
    EXPECT_EQ(run(manager, m_, items, false), alone) << "first replay";
    manager.fill_memory_with_nan();
    EXPECT_EQ(run(manager, m_, items, false), alone) << "replay over memory full of NaN";
    EXPECT_GT(manager.stats().graph_hits + manager.stats().graph_partial, 0);
  }
}

// Units are cut anywhere, run in any order, and share sub-batches with those of other items.
TEST_P(Conformance, RowsAreTheSameBitsWhereverItemsAreCut) {
  constexpr std::int64_t kCheapRows = 1024;
  std::mt19937 random(2);
  std::vector<PreparedItem> items = random_items(*m_.model);
  const auto add_cheap = [&](const ItemPlan& plan) {
    if (plan.spec.input_rows <= kCheapRows) items.push_back(random_item(plan, random));
  };
  const auto side = [&] { return 28 + static_cast<std::int64_t>(random() % 200); };
  for (int i = 0; i < 4; ++i) {
    add_cheap(processor().plan_image(side(), side()));
    if (takes_videos(*m_.model)) {
      add_cheap(processor().plan_video(1 + static_cast<std::int64_t>(random() % 12), 64, 48));
    }
  }
  const auto num_paths = static_cast<PathId>(m_.model->graph_spec().paths.size());
  PartRuns whole(m_, items);
  for (PathId path = 0; path < num_paths; ++path) {
    for (const ItemPart& part : test::whole_items(items, path)) whole.run(path, {&part, 1});
  }
  for (const std::uint32_t most : {1, 3}) {
    SCOPED_TRACE(most);
    PartRuns runs(m_, items);
    for (const std::vector<ItemPart>& parts : random_batches(items, num_paths, most, random)) {
      runs.run(parts.front().path, parts);
    }
    EXPECT_EQ(runs.rows(), whole.rows());
  }
}

// Of towers with one path, which give the rows of an item in the order of its units.
TEST_P(Conformance, RowsOfAUnitDoNotDependOnOtherUnits) {
  if (m_.model->graph_spec().paths.size() > 1) return;
  GraphManager manager(*m_.model, *m_.device, {});
  for (PreparedItem& item : random_items(*m_.model)) {
    const PreparedItem* const items[]{&item};
    const std::vector<std::byte> before = run(manager, m_, items, true).front();
    item.pixels.back() ^= 0xff;  // of the last unit
    const std::vector<std::byte> after = run(manager, m_, items, true).front();
    const auto count = static_cast<std::size_t>(item.plan.spec.units.front().count);
    const std::size_t others = before.size() / count * (count - 1);
    EXPECT_TRUE(std::equal(before.begin(), before.begin() + static_cast<std::ptrdiff_t>(others),
                           after.begin()));
    EXPECT_NE(before, after);
  }
}

INSTANTIATE_TEST_SUITE_P(Models, Conformance, ::testing::ValuesIn(test::golden_models()),
                         [](const auto& folder) {
                           return std::filesystem::path(folder.param).filename().string();
                         });

}  // namespace
}  // namespace fovea
