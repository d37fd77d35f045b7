// DeepSeek-OCR 2 behind the graph protocol: its paths, the places of rows, the order of rows.
#include "models/deepseek_ocr2/model.h"

#include <gtest/gtest.h>

#include "device/cpu/cpu_device.h"
#include "models/config_files.h"
#include "models/host_inputs.h"
#include "models/load_model.h"
#include "ops/cpu/cpu_kernels.h"

namespace fovea::deepseek_ocr2 {
namespace {

constexpr std::int64_t kWidth = 8;

using Rows = std::vector<float>;

/// A tiny encoder with dummy weights.
class DeepseekOcr2Model : public ::testing::Test {
 protected:
  [[nodiscard]] PreparedItem image(std::int64_t width_px, std::int64_t height_px) const {
    PreparedItem item{.plan = model_->processor().plan_image(width_px, height_px), .pixels = {}};
    item.pixels.resize(item.plan.pixel_bytes);
    return item;
  }

  /// Puts rows that hold the numbers from `first` on among those of the item of a part.
  void put(const ItemPart& part, float first, Rows& out) {
    Rows rows;
    for (std::int64_t row = 0; row < part.tokens(); ++row) {
      rows.insert(rows.end(), kWidth, first + static_cast<float>(row));
    }
    Arena arena(nullptr, 0);
    ExecContext ctx{*stream_, *kernels_, arena, *stream_};
    const TensorView to = view(out);
    model_->assemble(ctx, part.path, view(rows), {&part, 1}, {&to, 1});
    stream_->synchronize();
  }
  static TensorView view(Rows& rows) {
    const auto count = static_cast<std::int64_t>(rows.size()) / kWidth;
    return {reinterpret_cast<std::byte*>(rows.data()), DType::kF32, {count, kWidth}};
  }

  std::unique_ptr<Kernels> kernels_ = make_cpu_kernels(CpuIsa::kPortable, 1);
  std::unique_ptr<Device> device_ = make_cpu_device(1, *kernels_);
  std::unique_ptr<Stream> stream_ = device_->create_stream();
  std::unique_ptr<EncoderGraphModel> model_ = load_model(
      test::config_files({.config = R"({"architectures": ["DeepseekOcr2ForConditionalGeneration"],
          "vision_config": {
            "sam_config": {"hidden_size": 16, "num_attention_heads": 2, "num_hidden_layers": 1,
                           "output_channels": 8, "downsample_channels": [8, 16],
                           "global_attn_indexes": []},
            "encoder_config": {"hidden_size": 16, "num_attention_heads": 2,
                               "num_hidden_layers": 1, "intermediate_size": 8}},
          "text_config": {"hidden_size": 8, "max_position_embeddings": 4096}})"}),
      {}, checkpoint::WeightSource::dummy(0), *device_, *stream_);
};

TEST_F(DeepseekOcr2Model, DeclaresTwoPaths) {
  const GraphSpec& spec = model_->graph_spec();
  EXPECT_EQ(spec.modalities, std::vector<Modality>{Modality::kImage});
  EXPECT_EQ(spec.out_width, kWidth);
  EXPECT_EQ(spec.max_token_budget, 4096);
  ASSERT_EQ(spec.paths.size(), 2u);
  EXPECT_EQ(spec.paths[kGlobal].unit, 256);
  EXPECT_FALSE(spec.paths[kGlobal].allow_zero_tokens);
  EXPECT_EQ(spec.paths[kLocal].unit, 144);
  EXPECT_TRUE(spec.paths[kLocal].allow_zero_tokens);
  EXPECT_EQ(spec.paths[kLocal].max_item_tokens, 864);
}

TEST_F(DeepseekOcr2Model, TilesComeFirstThenTheGlobalViewAndASeparator) {
  const PreparedItem item = image(1920, 1080);  // two tiles
  Rows out(static_cast<std::size_t>(item.plan.spec.out_rows * kWidth), -9.0f);
  const auto at = [&](std::int64_t row) { return out[static_cast<std::size_t>(row * kWidth)]; };
  put({.item = &item, .path = kLocal, .first = 1, .count = 1}, 5000, out);
  EXPECT_EQ(at(143), -9.0f);
  put({.item = &item, .path = kLocal, .first = 0, .count = 1}, 1000, out);
  put(ItemPart::whole(item, kGlobal), 0, out);
  for (const std::int64_t row : {0, 1, 143}) EXPECT_EQ(at(row), 1000 + row);
  for (const std::int64_t row : {0, 1, 143}) EXPECT_EQ(at(144 + row), 5000 + row);
  for (const std::int64_t row : {0, 1, 255}) EXPECT_EQ(at(288 + row), row);
  ASSERT_EQ(item.plan.spec.out_rows, 288 + 256 + 1);
  EXPECT_NE(at(544), -9.0f) << "the separator";
}

TEST_F(DeepseekOcr2Model, EveryRowHasItsPlaceInTheSequenceOfItsView) {
  const PreparedItem item = image(1920, 1080);
  const ItemPart tiles = ItemPart::whole(item, kLocal);
  const GraphCapacity capacity{.tokens = 3 * 144, .items = 2, .seqs = 3};
  test::HostInputs inputs(model_->inputs(kLocal, capacity));
  inputs.fill([&](InputWriter& writer) {
    model_->fill_inputs(kLocal, capacity, {&tiles, 1}, writer);
  });
  ASSERT_EQ(inputs.rows_of("positions"), 2 * 288) << "features and queries of two tiles";
  const auto* const positions = inputs.tensors()["positions"].as<std::int32_t>();
  for (const std::int64_t row : {0, 1, 287, 288, 575}) {
    for (const std::int64_t axis : {0, 1}) EXPECT_EQ(positions[4 * row + axis], row % 288);
  }
}

TEST(DeepseekOcr2ViewLayout, ASequenceIsTheFeaturesOfAViewAndItsQueries) {
  const common::ViewLayout layout = layout_of(common::sam_view(768, 16));
  EXPECT_EQ(layout.tokens, 144);
  EXPECT_EQ(layout.sequence.rows(), 288);
  EXPECT_EQ(layout.sequence.first_patch, 0);
  EXPECT_EQ(layout.sequence.first_class_row(), 144);
  EXPECT_EQ(layout.views_per_chunk, 7);
  EXPECT_EQ(layout.chunk_stages, (std::vector<std::int64_t>{576, 144}));
}

}  // namespace
}  // namespace fovea::deepseek_ocr2
