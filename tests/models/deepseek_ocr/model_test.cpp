// DeepSeek-OCR behind the graph protocol: budgets and packing of worked examples, and every
// combination of replayed, eager and skipped paths.
#include "models/deepseek_ocr/model.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <map>
#include <random>
#include <tuple>

#include "checkpoint/safetensors.h"
#include "device/cpu/cpu_device.h"
#include "fovea/tower/graph/graph_manager.h"
#include "graph/graph_config.h"
#include "graph/packing.h"
#include "models/config_files.h"
#include "models/deepseek_ocr/config.h"
#include "models/load_model.h"
#include "ops/cpu/cpu_kernels.h"
#include "support/golden.h"
#include "support/property.h"

namespace fovea::deepseek_ocr {
namespace {

using Rows = std::vector<float>;
using List = std::vector<std::int64_t>;
using Sizes = std::vector<std::pair<std::int64_t, std::int64_t>>;

/// The golden checkpoint, loaded once.
struct Checkpoint {
  std::string folder = test::golden_folder("deepseek_ocr", "model.safetensors");
  std::unique_ptr<Kernels> kernels = make_cpu_kernels(detect_cpu_isa());
  std::unique_ptr<Device> device = make_cpu_device(3, *kernels);
  std::unique_ptr<Stream> stream = device->create_stream();
  std::unique_ptr<EncoderGraphModel> model =
      load_model(checkpoint::read_hf_config(folder), {}, checkpoint::WeightSource::open(folder),
                 *device, *stream);
};

const Checkpoint& golden() {
  static const Checkpoint checkpoint;
  return checkpoint;
}

/// An image of random views; different seeds, different images.
PreparedItem image(std::int64_t width_px, std::int64_t height_px, std::uint32_t seed) {
  std::mt19937 random(seed);
  const ItemPlan plan = golden().model->processor().plan_image(width_px, height_px);
  return {.plan = plan, .pixels = test::random_bytes(plan.pixel_bytes, random)};
}

std::vector<PreparedItem> images(const Sizes& sizes) {
  std::vector<PreparedItem> items;
  for (const auto& [width, height] : sizes) {
    items.push_back(image(width, height, static_cast<std::uint32_t>(items.size())));
  }
  return items;
}

enum class Run { kAsConfigured, kEager };

std::vector<Rows> encode(GraphManager& manager, const std::vector<PreparedItem>& items,
                         Run run = Run::kAsConfigured) {
  const std::int64_t width = golden().model->graph_spec().out_width;
  std::vector<Rows> rows;
  std::vector<const PreparedItem*> pointers;
  for (const PreparedItem& item : items) {
    rows.emplace_back(static_cast<std::size_t>(item.plan.spec.out_rows * width));
    pointers.push_back(&item);
  }
  std::vector<TensorView> out;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    out.push_back({reinterpret_cast<std::byte*>(rows[i].data()),
                   DType::kF32,
                   {items[i].plan.spec.out_rows, width}});
  }
  run == Run::kEager ? manager.execute_eager(pointers, out) : manager.execute(pointers, out);
  return rows;
}

/// What every way of running must give: each image by itself, without graphs. Computed once for
/// equal images.
std::vector<Rows> encode_alone(const std::vector<PreparedItem>& items) {
  using Key = std::tuple<std::int64_t, std::int64_t, std::vector<std::uint8_t>>;
  static std::map<Key, Rows> known;  // by size and pixels
  GraphManager manager(*golden().model, *golden().device, {});
  std::vector<Rows> rows;
  rows.reserve(items.size());
  for (const PreparedItem& item : items) {
    const ItemPlan& plan = item.plan;
    Rows& alone = known[{plan.source_width_px, plan.source_height_px, item.pixels}];
    if (alone.empty()) alone = std::move(encode(manager, {item}, Run::kEager).front());
    rows.push_back(alone);
  }
  return rows;
}

GraphManagerOptions with_budgets(const List& budgets, std::int64_t max_items) {
  GraphManagerOptions options;
  options.user.encoder_cudagraph_token_budgets = budgets;
  options.user.encoder_cudagraph_max_vision_items_per_batch = max_items;
  options.missing = MissingGraph::kCapture;
  return options;
}

TEST(DeepseekOcrModel, DeclaresTwoPaths) {
  const GraphSpec& spec = golden().model->graph_spec();
  EXPECT_EQ(spec.modalities, std::vector<Modality>{Modality::kImage});
  EXPECT_EQ(spec.out_width, 64);
  ASSERT_EQ(spec.paths.size(), 2u);
  EXPECT_EQ(spec.paths[kGlobal].name, "global");
  EXPECT_EQ(spec.paths[kGlobal].unit, 272);
  EXPECT_FALSE(spec.paths[kGlobal].allow_zero_tokens);
  EXPECT_EQ(spec.paths[kLocal].name, "local");
  EXPECT_EQ(spec.paths[kLocal].unit, 100);
  EXPECT_TRUE(spec.paths[kLocal].allow_zero_tokens);
  EXPECT_EQ(spec.paths[kLocal].max_item_tokens, 600);
}

/// Budgets of the released model that follow from the most tokens of a step. Its language model
/// takes more than any of them.
GraphConfig budgets_for(std::int64_t max_tokens) {
  const auto planner =
      plan_model(test::config_files({.config = R"({"architectures": ["DeepseekOCRForCausalLM"],
          "vision_config": {"width": {"sam_vit_b": {}, "clip-l-14-224": {}}},
          "projector_config": {}, "max_position_embeddings": 65536})"}),
                 {});
  return graph_config_of(*planner, max_tokens, {.user = {}});
}

TEST(DeepseekOcrModel, BudgetsAreThoseOfTheWorkedExamples) {
  struct Example {
    std::int64_t max_tokens;
    List global, views, local, tiles;
    std::int64_t max_items, graphs;
  };
  for (const Example& e : {Example{8192,
                                   {272, 544, 1088, 2176, 4352, 8192},
                                   {1, 2, 4, 8, 16, 30},
                                   {0, 100, 200, 400, 800, 1600, 3200, 6400, 8192},
                                   {0, 1, 2, 4, 8, 16, 32, 64, 81},
                                   30,
                                   14},
                           Example{13824,
                                   {272, 544, 1088, 2176, 4352, 8704, 13824},
                                   {1, 2, 4, 8, 16, 32, 50},
                                   {0, 100, 200, 400, 800, 1600, 3200, 6400, 12800, 13824},
                                   {0, 1, 2, 4, 8, 16, 32, 64, 128, 138},
                                   50,
                                   16},
                           Example{1152,
                                   {272, 544, 1088},
                                   {1, 2, 4},
                                   {0, 100, 200, 400, 800, 1152},
                                   {0, 1, 2, 4, 8, 11},
                                   4,
                                   8}}) {
    SCOPED_TRACE(e.max_tokens);
    const GraphConfig config = budgets_for(e.max_tokens);
    EXPECT_EQ(config.path_budgets[kGlobal], e.global);
    EXPECT_EQ(config.path_budgets[kLocal], e.local);
    EXPECT_EQ(config.max_items, e.max_items);
    EXPECT_EQ(count_graphs(config), e.graphs);
    for (std::size_t i = 0; i < e.views.size(); ++i) EXPECT_EQ(e.global[i] / 272, e.views[i]);
    for (std::size_t i = 0; i < e.tiles.size(); ++i) EXPECT_EQ(e.local[i] / 100, e.tiles[i]);
  }
}

TEST(DeepseekOcrModel, TheLanguageModelLimitsTheBudgets) {
  const GraphSpec& spec = golden().model->graph_spec();
  EXPECT_EQ(budget_range(spec, 1 << 20).max, 8192);
  EXPECT_EQ(budget_range(spec, 1152).min, 272);
  EXPECT_EQ(budget_range(spec, 100).min, 100) << "refused when budgets are resolved";
}

const Sizes kPackedSizes{{640, 640}, {1000, 800}, {1920, 1080}, {641, 480}};

TEST(DeepseekOcrModel, PacksTheWorkedExample) {
  std::vector<ItemSpec> specs;
  for (const auto& [width, height] : kPackedSizes) {
    specs.push_back(golden().model->processor().plan_image(width, height).spec);
  }
  const Packing packing = plan_packing(budgets_for(1152), specs, PackingPolicy::kGreedy);
  EXPECT_EQ(packing.order, (std::vector<PackedItem>{{0}, {2}, {1}, {3}}));
  ASSERT_EQ(packing.batches.size(), 2u);
  EXPECT_EQ(packing.batches[0].count, 2);  // 200 and 400 by themselves are less than the 800 of 600
  EXPECT_EQ(packing.batches[0].load[kLocal], 200);
  EXPECT_EQ(packing.batches[0].budgets[kGlobal], 544);
  EXPECT_EQ(packing.batches[0].budgets[kLocal], 200);
  EXPECT_EQ(packing.batches[1].budgets[kGlobal], 544);
  EXPECT_EQ(packing.batches[1].budgets[kLocal], 1152);
}

TEST(DeepseekOcrModel, NewlineAndSeparatorRowsAreThoseOfTheCheckpoint) {
  const checkpoint::SafetensorsFile file(golden().folder + "/model.safetensors");
  const auto vector_of = [&](const std::string& name) {
    const ConstTensorView stored = file.tensor("model." + name);
    Rows values(static_cast<std::size_t>(stored.shape.elements()));
    widen_to_f32(stored.dtype, stored.data, values.data(), values.size());
    return values;
  };
  const Rows newline = vector_of("image_newline");
  const Rows separator = vector_of("view_seperator");
  GraphManager manager(*golden().model, *golden().device, with_budgets({272, 600}, 4));
  const Rows rows = encode(manager, images({{641, 480}})).front();
  const auto row = [&](std::int64_t index) {
    return Rows(rows.begin() + index * 64, rows.begin() + (index + 1) * 64);
  };
  for (std::int64_t y = 0; y < 20; ++y) EXPECT_EQ(row(31 * y + 30), newline) << "tile row " << y;
  for (std::int64_t y = 0; y < 16; ++y) EXPECT_EQ(row(620 + 17 * y + 16), newline) << "row " << y;
  EXPECT_EQ(row(892), separator);
}

/// The model with a global path whose budgets are those of the user as they are: with budgets below
/// 272 tokens no global view fits a graph, which the real lists rule out. Its local path expects no
/// more than two tiles, so that a single list has no budget for three.
class WithoutGlobalMinimum final : public EncoderGraphModel {
 public:
  WithoutGlobalMinimum() : spec_(golden().model->graph_spec()) {
    spec_.paths[kGlobal].min_token_budget.reset();
    spec_.paths[kLocal].max_item_tokens = 200;
  }
  [[nodiscard]] const GraphSpec& graph_spec() const noexcept override { return spec_; }
  [[nodiscard]] const ItemProcessor& processor() const noexcept override {
    return model_.processor();
  }
  [[nodiscard]] std::int64_t path_width(PathId path) const override {
    return model_.path_width(path);
  }
  [[nodiscard]] std::vector<BufferDecl> inputs(PathId path,
                                               const GraphCapacity& capacity) const override {
    return model_.inputs(path, capacity);
  }
  void fill_inputs(PathId path, const GraphCapacity& capacity, std::span<const ItemPart> parts,
                   InputWriter& writer) const override {
    model_.fill_inputs(path, capacity, parts, writer);
  }
  void forward(ExecContext& ctx, PathId path, const GraphCapacity& capacity, const NamedTensors& in,
               TensorView out) const override {
    model_.forward(ctx, path, capacity, in, out);
  }
  void assemble(ExecContext& ctx, PathId path, TensorView rows, std::span<const ItemPart> parts,
                std::span<const TensorView> out) const override {
    model_.assemble(ctx, path, rows, parts, out);
  }

 private:
  const EncoderGraphModel& model_ = *golden().model;
  GraphSpec spec_;
};

TEST(DeepseekOcrModel, RowsAreThoseOfAnEagerRunHoweverThePathsRun) {
  // What happens to the paths of one sub-batch.
  struct Case {
    const char* name;
    Sizes sizes;
    List budgets;
    List local;         // those of the local path, where they are others
    bool small_global;  // no budget holds a global view
    std::int64_t global_replays, global_eager, local_replays, local_eager;
    std::int64_t hits, partial, misses;  // items
  };
  const WithoutGlobalMinimum without_minimum;
  for (const Case& c : {
           Case{"global replay, local skipped",
                {{320, 240}, {600, 600}},
                {544},
                {},
                false,
                1,
                0,
                0,
                0,
                2,
                0,
                0},
           Case{"both replay",
                {{1920, 1080}, {320, 240}},
                {544, 200},
                {},
                false,
                1,
                0,
                1,
                0,
                2,
                0,
                0},
           Case{"global replay, local eager",
                {{1920, 1080}},
                {272},
                {100},
                false,
                1,
                0,
                0,
                1,
                0,
                1,
                0},
           Case{"global eager, local replay", {{1920, 1080}}, {200}, {}, true, 0, 1, 1, 0, 0, 1, 0},
           Case{"global eager, local skipped", {{320, 240}}, {200}, {}, true, 0, 1, 0, 0, 0, 0, 1},
           Case{"both eager", {{1920, 640}}, {200}, {}, true, 0, 1, 0, 1, 0, 0, 1},
       }) {
    SCOPED_TRACE(c.name);
    const EncoderGraphModel& model =
        c.small_global ? static_cast<const EncoderGraphModel&>(without_minimum) : *golden().model;
    GraphManagerOptions options = with_budgets(c.local.empty() ? c.budgets : List{}, 2);
    if (!c.local.empty()) {
      options.user.encoder_cudagraph_path_token_budgets = {{"global", c.budgets},
                                                           {"local", c.local}};
    }
    GraphManager manager(model, *golden().device, options);
    const std::vector<PreparedItem> items = images(c.sizes);
    EXPECT_EQ(encode(manager, items), encode_alone(items));
    const Stats stats = manager.stats();
    EXPECT_EQ(stats.sub_batches, 1);
    EXPECT_EQ(stats.paths[kGlobal].replays, c.global_replays);
    EXPECT_EQ(stats.paths[kGlobal].eager_runs, c.global_eager);
    EXPECT_EQ(stats.paths[kLocal].replays, c.local_replays);
    EXPECT_EQ(stats.paths[kLocal].eager_runs, c.local_eager);
    EXPECT_EQ(stats.graph_hits, c.hits);
    EXPECT_EQ(stats.graph_partial, c.partial);
    EXPECT_EQ(stats.graph_misses, c.misses);
    const bool any_eager = c.global_eager + c.local_eager > 0;
    EXPECT_EQ(stats.miss_reasons.contains("oversized"), any_eager);
  }
}

TEST(DeepseekOcrModel, CountsLiveAndPaddedRowsPerPath) {
  GraphManager manager(*golden().model, *golden().device, with_budgets({544, 800}, 2));
  (void)encode(manager, images({{641, 480}}));
  const Stats stats = manager.stats();
  EXPECT_EQ(stats.paths[kGlobal].live_rows, 272);
  EXPECT_EQ(stats.paths[kLocal].live_rows, 600);
  EXPECT_EQ(stats.paths[kGlobal].padded_rows, 0) << "272 itself is always a budget";
  EXPECT_EQ(stats.paths[kLocal].padded_rows, 200);
}

TEST(DeepseekOcrModel, OutputsKeepTheOrderThatPackingChanges) {
  // Packed as 0, 2, 1 and 3; memory full of NaN shows rows taken from the wrong place.
  const std::vector<PreparedItem> items = images(kPackedSizes);
  GraphManagerOptions options;
  options.max_num_batched_tokens = 1152;
  options.missing = MissingGraph::kCapture;
  GraphManager manager(*golden().model, *golden().device, options);
  manager.fill_memory_with_nan();
  EXPECT_EQ(encode(manager, items), encode_alone(items));
  EXPECT_EQ(manager.stats().sub_batches, 2);
  EXPECT_EQ(manager.stats().graph_hits, 4);
}

TEST(DeepseekOcrModel, BatchesLargerThanAChunkOfViewsHaveTheSameRows) {
  // SAM takes 4 global views or 10 tiles at a time: 5 of the former, 12 of the latter.
  const std::vector<PreparedItem> items =
      images({{64, 64}, {641, 480}, {300, 200}, {480, 641}, {64, 200}});
  GraphManager manager(*golden().model, *golden().device, with_budgets({1360}, 5));
  const std::vector<Rows> alone = encode_alone(items);
  EXPECT_EQ(encode(manager, items), alone);
  EXPECT_EQ(manager.stats().sub_batches, 1);
  EXPECT_EQ(manager.stats().paths[kLocal].live_rows, 1200);
  EXPECT_EQ(encode(manager, items, Run::kEager), alone);
}

}  // namespace
}  // namespace fovea::deepseek_ocr
