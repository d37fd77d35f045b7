// SigLIP over square views: what is read of a configuration, and the order of positions.
#include "models/common/views/siglip.h"

#include <gtest/gtest.h>

#include "checkpoint/safetensors.h"
#include "core/check.h"
#include "device/cpu/cpu_device.h"
#include "ops/cpu/cpu_kernels.h"
#include "support/expect_error.h"
#include "support/temporary_directory.h"

namespace fovea::common {
namespace {

SiglipConfig parse(const std::string& vision) {
  const JsonDocument document = JsonDocument::parse(vision, "vision");
  return read_siglip(document.root());
}

TEST(SiglipConfig, HasTheDefaultsOfTheReferencesClass) {
  const SiglipConfig c = parse("{}");
  EXPECT_EQ(c.hidden_size, 768);
  EXPECT_EQ(c.num_hidden_layers, 12);
  EXPECT_EQ(c.num_attention_heads, 12);
  EXPECT_EQ(c.intermediate_size, 3072);
  EXPECT_EQ(c.view.patches(), 196);
  EXPECT_EQ(c.layer_norm_eps, 1e-6);
  EXPECT_EQ(c.hidden_act, ops::Activation::kGeluTanh);
}

TEST(SiglipConfig, ReadsWhatAFileSays) {
  const SiglipConfig c = parse(R"({"hidden_size": 1152, "num_hidden_layers": 27,
      "num_attention_heads": 16, "intermediate_size": 4304, "image_size": 896, "patch_size": 14,
      "layer_norm_eps": 1e-5, "hidden_act": "gelu", "model_type": "siglip_vision_model"})");
  EXPECT_EQ(c.hidden_size, 1152);
  EXPECT_EQ(c.num_hidden_layers, 27);
  EXPECT_EQ(c.num_attention_heads, 16);
  EXPECT_EQ(c.intermediate_size, 4304);
  EXPECT_EQ(c.view.patches(), 4096);
  EXPECT_EQ(c.layer_norm_eps, 1e-5);
  EXPECT_EQ(c.hidden_act, ops::Activation::kGeluErf);
}

TEST(SiglipConfig, RefusesWhatTheTowerDoesNotHave) {
  const auto expect_refused = [](const std::string& message, const std::string& vision) {
    test::expect_error(ErrorCode::kUnsupported, message, [&] { (void)parse(vision); });
  };
  expect_refused("model_type: only siglip_vision_model is supported, got siglip2_vision_model",
                 R"({"model_type": "siglip2_vision_model"})");
  expect_refused("hidden_act: expected gelu_pytorch_tanh", R"({"hidden_act": "relu"})");
  expect_refused("num_channels: only 3 is supported, got 1", R"({"num_channels": 1})");
}

TEST(SiglipConfig, PatchesThatDoNotDivideAnImageLeaveOutTheRest) {
  EXPECT_EQ(parse(R"({"image_size": 384, "patch_size": 14})").view.patches(), 27 * 27);
  test::expect_error(ErrorCode::kCorruptData, "image_size: 13 pixels hold no patch of 14",
                     [] { (void)parse(R"({"image_size": 13, "patch_size": 14})"); });
}

TEST(SiglipTower, PositionsFollowThePatchesOfTokens) {
  // 4 x 4 patches, 2 x 2 of them a token; every row of the table holds its number.
  SiglipConfig c{.hidden_size = 8,
                 .num_hidden_layers = 0,
                 .num_attention_heads = 1,
                 .intermediate_size = 8,
                 .view = {.side_px = 4, .patch_px = 1, .merge = 2}};
  std::vector<float> table;
  for (int row = 0; row < 16; ++row) table.insert(table.end(), 8, static_cast<float>(row));
  const std::vector<float> zeros(24, 0.0f);
  const auto view = [](const std::vector<float>& values, const Shape& shape) -> ConstTensorView {
    return {reinterpret_cast<const std::byte*>(values.data()), DType::kF32, shape};
  };
  const test::TemporaryDirectory folder;
  const std::vector<checkpoint::OutputTensor> tensors{
      {"t.embeddings.patch_embedding.weight", view(zeros, {8, 3, 1, 1})},
      {"t.embeddings.patch_embedding.bias", view(zeros, {8})},
      {"t.embeddings.position_embedding.weight", view(table, {16, 8})}};
  checkpoint::write_safetensors(folder / "model.safetensors", tensors, {});
  const auto source = checkpoint::WeightSource::open(folder.path());
  const auto kernels = make_cpu_kernels(detect_cpu_isa());
  const auto device = make_cpu_device(1, *kernels);
  const auto stream = device->create_stream();
  WeightLoader loader(source, "", *device, *stream);
  const SiglipTower tower = load_siglip(loader, "t.", c, {});
  stream->synchronize();
  std::vector<int> order;
  for (int row = 0; row < 16; ++row) {
    order.push_back(static_cast<int>(tower.position_embedding.view().as<float>()[8 * row]));
  }
  EXPECT_EQ(order, (std::vector<int>{0, 1, 4, 5, 2, 3, 6, 7, 8, 9, 12, 13, 10, 11, 14, 15}));
}

TEST(SiglipLayout, HasNoClassRows) {
  SiglipConfig c;
  c.view.merge = 2;
  const ViewLayout layout = siglip_layout(c);
  EXPECT_EQ(layout.sequence.rows(), 196);
  EXPECT_EQ(layout.tokens, 49);
  EXPECT_EQ(layout.stages, std::vector<std::int64_t>{49});
  EXPECT_EQ(layout.views_per_chunk, 16384 / 196);
  c.view.side_px = 16 * 256;  // more patches than a chunk should have
  EXPECT_EQ(siglip_layout(c).views_per_chunk, 1);
}

}  // namespace
}  // namespace fovea::common
