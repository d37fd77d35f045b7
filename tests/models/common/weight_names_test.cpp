// Where tensors are in checkpoints that transformers wrote by its own names.
#include "models/common/weight_names.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>

#include "checkpoint/safetensors.h"
#include "core/check.h"
#include "models/config_files.h"
#include "models/load_model.h"
#include "support/temporary_directory.h"

namespace fovea::common {
namespace {

TEST(WeightNames, RenameTheFirstOccurrenceOfEachPart) {
  static constexpr std::array<RenamedPart, 2> kParts{{{"a.a.", "b."}, {".w", ".q.w"}}};
  const WeightNames names("model.", kParts);
  EXPECT_EQ(names.stored("a.a.a.w.w"), "model.b.a.q.w.w");
  EXPECT_EQ(names.stored("c"), "model.c");
  EXPECT_EQ(WeightNames("tower.").stored("a.a.w"), "tower.a.a.w");
}

struct Case {
  const char* architecture;
  /// Names in the state_dict() of a model, or in a file that save_pretrained() wrote: the first is
  /// that by which the tower is found.
  std::vector<std::string> names;
};

class OtherNamesTest : public ::testing::TestWithParam<Case> {};

/// What the families want to know of a tower, where they have no size of their own.
constexpr const char* kSizes = R"(
    "text_config": {"hidden_size": 64},
    "vision_config": {"sam_config": {},
                      "encoder_config": {"hidden_size": 896, "num_attention_heads": 14}},
    "vit_config": {}, "adapter_config": {},
    "mm_tokens_per_image": 49, "image_grid_pinpoints": [[2688, 2688]])";

// Names as transformers 5.24 gives them.
TEST_P(OtherNamesTest, AreThoseOfTransformers) {
  const auto& [architecture, names] = GetParam();
  const test::TemporaryDirectory folder;
  const float value = 0;
  const std::vector<checkpoint::OutputTensor> tensors{
      {names.front(), {reinterpret_cast<const std::byte*>(&value), DType::kF32, {1}}}};
  checkpoint::write_safetensors(folder / "model.safetensors", tensors, {});
  const auto source = checkpoint::WeightSource::open(folder.path());
  const auto files = test::config_files(
      {.config = cat(R"({"architectures": [")", architecture, R"("],)", kSizes, "}")});
  const ModelReport report = check_model(files, {}, source).report;
  for (const std::string& name : names) {
    EXPECT_EQ(std::ranges::count(report.tensors, name, &TensorReport::name), 1) << name;
  }
}

std::vector<std::string> of_siglip() {
  return {"model.vision_tower.embeddings.patch_embedding.weight",
          "model.vision_tower.encoder.layers.0.self_attn.q_proj.weight"};
}

INSTANTIATE_TEST_SUITE_P(
    Families, OtherNamesTest,
    ::testing::Values(
        Case{"Gemma3ForConditionalGeneration", of_siglip()},
        Case{"PaliGemmaForConditionalGeneration", of_siglip()},
        Case{"Lfm2VlForConditionalGeneration", of_siglip()},
        Case{"Cohere2VisionForConditionalGeneration", of_siglip()},
        Case{"AyaVisionForConditionalGeneration", of_siglip()},
        Case{"LlavaForConditionalGeneration", of_siglip()},
        Case{"LlavaNextForConditionalGeneration", of_siglip()},
        Case{"LlavaOnevisionForConditionalGeneration", of_siglip()},
        Case{"DeepseekVLForConditionalGeneration",
             {"model.vision_model.embeddings.patch_embedding.weight",
              "model.vision_model.post_layernorm.weight", "model.aligner.linear1.weight"}},
        Case{"Ernie4_5_VLMoeForConditionalGeneration",  // modules
             {"model.vision_tower.patch_embed.proj.weight",
              "model.vision_tower.blocks.0.norm1.weight",
              "model.resampler_model.spatial_linear.fc1.weight",
              "model.resampler_model.temporal_linear.ln.bias",
              "model.resampler_model.after_norm.weight"}},
        Case{"Ernie4_5_VLMoeForConditionalGeneration",  // saved
             {"model.vision_model.patch_embed.proj.weight", "model.vision_model.ln.weight",
              "model.resampler_model.spatial_linear.0.weight"}},
        Case{"KimiK25ForConditionalGeneration",  // saved
             {"vision_tower.encoder.patch_embed.proj.weight",
              "vision_tower.patch_embed.pos_emb.weight",
              "vision_tower.encoder.blocks.0.norm0.weight", "model.mm_projector.pre_norm.weight",
              "mm_projector.proj.0.weight"}},
        Case{"HunYuanVLForConditionalGeneration",
             {"model.vision_tower.embeddings.patch_embedding.weight",
              "model.vision_tower.layers.0.layer_norm1.weight",
              "model.vision_tower.layers.0.layer_norm2.weight",
              "model.vision_tower.layers.0.mlp.fc1.weight",
              "model.vision_tower.layers.0.mlp.fc2.weight",
              "model.vision_tower.patch_merger.proj_conv.weight",
              "model.vision_tower.patch_merger.proj_out.weight",
              "model.vision_tower.patch_merger.image_newline"}},
        Case{"MiniMaxM3SparseForConditionalGeneration",
             {"model.vision_tower.embeddings.proj.weight", "model.vision_tower.pre_layrnorm.weight",
              "model.vision_tower.layers.0.mlp.fc1.weight",
              "model.multi_modal_projector.linear_1.weight",
              "model.multi_modal_projector.merge_linear_2.bias"}},
        Case{
            "Molmo2ForConditionalGeneration",
            {"model.vision_tower.patch_embedding.weight", "model.vision_tower.positional_embedding",
             "model.vision_tower.layers.0.layer_norm1.weight",
             "model.vision_tower.layers.0.layer_norm2.weight",
             "model.vision_tower.layers.0.self_attn.o_proj.bias",
             "model.vision_tower.layers.0.mlp.fc2.weight",
             "model.multi_modal_projector.image_pooling_2d.q_proj.weight",
             "model.multi_modal_projector.image_pooling_2d.o_proj.bias",
             "model.multi_modal_projector.image_projector.gate_proj.weight",
             "model.multi_modal_projector.image_projector.down_proj.weight",
             "model.multi_modal_projector.image_projector.up_proj.weight"}},
        Case{"PaddleOCRVLForConditionalGeneration",
             {"model.projector.pre_norm.weight", "model.projector.linear_2.bias",
              "model.visual.vision_model.embeddings.patch_embedding.weight"}},
        Case{"DeepseekOcr2ForConditionalGeneration",
             {"model.vision_tower.sam_encoder.patch_embed.projection.weight",
              "model.vision_tower.sam_encoder.pos_embed",
              "model.vision_tower.sam_encoder.layers.0.layer_norm1.weight",
              "model.vision_tower.sam_encoder.layers.0.attn.rel_pos_h",
              "model.vision_tower.sam_encoder.neck.conv1.weight",
              "model.vision_tower.sam_encoder.neck.layer_norm2.bias",
              "model.vision_tower.sam_encoder.proj.conv2.weight",
              "model.vision_tower.query_1024_resolution.weight",
              "model.vision_tower.query_768_resolution.weight",
              "model.vision_tower.vision_encoder.layers.0.input_layernorm.weight",
              "model.vision_tower.vision_encoder.norm.weight", "model.multi_modal_projector.weight",
              "model.view_separator"}}),
    [](const auto& tested) {
      return std::string(tested.param.architecture) + std::to_string(tested.index);
    });

}  // namespace
}  // namespace fovea::common
