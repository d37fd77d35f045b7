// Step3-VL behind the graph protocol: budgets, and the order of rows.
#include "models/step3_vl/model.h"

#include <gtest/gtest.h>

#include "core/check.h"
#include "device/cpu/cpu_device.h"
#include "models/config_files.h"
#include "models/host_inputs.h"
#include "models/load_model.h"
#include "models/step3_vl/config.h"
#include "ops/cpu/cpu_kernels.h"

namespace fovea::step3_vl {
namespace {

std::unique_ptr<EncoderGraphModel> published(const std::string& more = "") {
  return plan_model(test::config_files({.config = R"({"architectures":
      ["Step3VLForConditionalGeneration"], "vision_config": {"intermediate_size": 15360},
      "text_config": {"hidden_size": 7168)" + more +
                                                  "}}"}),
                    {});
}

TEST(Step3VlModel, HasAPathForImagesAndOneForWindows) {
  const auto model = published();
  const GraphSpec& spec = model->graph_spec();
  EXPECT_EQ(spec.modalities, std::vector<Modality>{Modality::kImage});
  EXPECT_EQ(spec.out_width, 7168);
  EXPECT_EQ(spec.min_token_budget, 169);
  EXPECT_FALSE(spec.max_token_budget.has_value());
  ASSERT_EQ(spec.paths.size(), 2u);
  EXPECT_EQ(spec.paths[kGlobal].unit, 169);
  EXPECT_EQ(spec.paths[kGlobal].max_item_tokens, 169);
  EXPECT_FALSE(spec.paths[kGlobal].allow_zero_tokens);
  EXPECT_EQ(spec.paths[kLocal].unit, 81);
  EXPECT_EQ(spec.paths[kLocal].min_token_budget, 81);
  EXPECT_TRUE(spec.paths[kLocal].allow_zero_tokens);
}

TEST(Step3VlModel, TheLanguageModelBoundsBudgets) {
  EXPECT_EQ(published(R"(, "max_seq_len": 4096)")->graph_spec().max_token_budget, 4096);
  EXPECT_EQ(published(R"(, "max_position_embeddings": 65536)")->graph_spec().max_token_budget,
            65536);
}

TEST(Step3VlModel, ABudgetHoldsWholeViews) {
  const auto model = published();
  const auto pixels = [&](PathId path, std::int64_t tokens) {
    return model->inputs(path, {.tokens = tokens, .items = 8, .seqs = 8}).back().shape[0];
  };
  EXPECT_EQ(pixels(kGlobal, 8112), 48 * 9 * 728 * 728) << "48 images in a budget of 8192";
  EXPECT_EQ(pixels(kLocal, 8181), 101 * 9 * 504 * 504) << "101 windows";
}

TEST(Step3VlModel, AnotherTowerIsAnotherFamily) {
  EXPECT_EQ(find_family("StepVLForConditionalGeneration").name, "step3p7") << "Step3-VL-10B";
}

/// Rows of a path that hold their numbers, from `first` on.
std::vector<float> numbered(std::int64_t rows, float first) {
  std::vector<float> values;
  for (std::int64_t row = 0; row < rows; ++row) {
    values.insert(values.end(), 7168, first + static_cast<float>(row));
  }
  return values;
}

TensorView view(std::vector<float>& rows) {
  const auto count = static_cast<std::int64_t>(rows.size()) / 7168;
  return {reinterpret_cast<std::byte*>(rows.data()), DType::kF32, {count, 7168}};
}

TEST(Step3VlModel, RowsOfTheWindowsComeBeforeThoseOfTheImage) {
  const auto model = published();
  const auto kernels = make_cpu_kernels(CpuIsa::kPortable, 1);
  const auto device = make_cpu_device(1, *kernels);
  const auto stream = device->create_stream();
  const PreparedItem plain{.plan = model->processor().plan_image(448, 448), .pixels = {}};
  const PreparedItem cut{.plan = model->processor().plan_image(700, 400), .pixels = {}};
  const std::vector<PreparedItem> items{cut, plain, cut};
  std::vector<float> global = numbered(3 * 169, 0);
  std::vector<float> local = numbered(4 * 81, 10000);
  std::vector<std::vector<float>> memory;
  std::vector<TensorView> out;
  for (const PreparedItem& item : items) memory.push_back(numbered(item.plan.spec.out_rows, -1e6f));
  for (std::vector<float>& rows : memory) out.push_back(view(rows));
  Arena arena(nullptr, 0);
  ExecContext ctx{*stream, *kernels, arena, *stream};
  model->assemble(ctx, kGlobal, view(global), test::whole_items(items, kGlobal), out);
  // The second window of the first image comes first; the plain image has none.
  const std::vector<ItemPart> windows{
      {&items[0], kLocal, 1, 1}, {&items[0], kLocal, 0, 1}, ItemPart::whole(items[2], kLocal)};
  model->assemble(ctx, kLocal, view(local), windows, std::vector{out[0], out[0], out[2]});
  stream->synchronize();
  const auto at = [&](std::size_t item, std::size_t row) { return memory[item][row * 7168]; };
  EXPECT_EQ(at(0, 0), 10081);
  EXPECT_EQ(at(0, 81), 10000);
  EXPECT_EQ(at(0, 161), 10080);
  EXPECT_EQ(at(0, 162), 0);
  EXPECT_EQ(at(0, 330), 168);
  EXPECT_EQ(at(1, 0), 169);
  EXPECT_EQ(at(1, 168), 337);
  EXPECT_EQ(at(2, 0), 10162) << "the windows after those of the first image";
  EXPECT_EQ(at(2, 162), 338);
}

}  // namespace
}  // namespace fovea::step3_vl
