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

std::vector<PreparedItem> random_items(const EncoderGraphModel& model) {
  std::mt19937 random(1);
  std::vector<PreparedItem> items;
  const auto add = [&](const ItemPlan& plan) {
    PreparedItem& item = items.emplace_back();
    item.plan = plan;
    item.pixels.resize(plan.pixel_bytes);
    for (std::uint8_t& byte : item.pixels) byte = static_cast<std::uint8_t>(random());
  };
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
  const PreparedItem item{.plan = processor().plan_image(640, 480), .pixels = {}};
  const std::vector<const PreparedItem*> items(kMost / item.plan.pixel_bytes + 1, &item);
  std::vector<InputWriter::Copy> copies;
  InputWriter writer({}, copies);
  test::expect_error(ErrorCode::kInvalidArgument, "expected at most 2147483647 bytes",
                     [&] { m_.model->fill_inputs(0, {}, items, writer); });
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
