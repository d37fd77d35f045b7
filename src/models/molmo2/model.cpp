// Molmo2 behind the model protocol. Source: docs/reference/molmo2.md, "Encoder graphs".
#include "models/molmo2/model.h"

#include <array>
#include <memory>
#include <string_view>
#include <utility>

#include "core/check.h"
#include "models/common/model.h"

namespace fovea::molmo2 {

namespace {

constexpr auto kImageOptions = std::to_array<std::string_view>({"max_crops"});

constexpr std::array<std::string_view, 1> kArchitectures{"Molmo2ForConditionalGeneration"};

constexpr std::int64_t kMaxFramesPerVideo = 32;  // longer videos run eagerly

using Model = common::OwnInputsModel<common::TowerModel, Processor, Config, Weights, Inputs>;

common::TowerAnswers describe(const Config& c, const Processing& p) {
  const bool videos = p.views.video_refusal.empty();
  const std::int64_t side = c.tower.view.side_px;
  std::string layers;
  for (const std::int64_t layer : c.vit_layers) layers += cat(layers.empty() ? "" : ", ", layer);
  common::TowerAnswers tower{.spec = {.modalities = {Modality::kImage},
                                      .main_width = c.text_hidden_size,
                                      .out_width = c.text_hidden_size,
                                      .max_frames_per_video = videos ? kMaxFramesPerVideo : 1},
                             .facts = common::transformer_facts(
                                 c.tower, {{"vit_layers", layers},
                                           {"crops", cat("up to ", p.max_crops, " of ", side, "x",
                                                         side, ", and the whole image")}})};
  if (videos) tower.spec.modalities.push_back(Modality::kVideo);
  return tower;
}

std::unique_ptr<EncoderGraphModel> make(const checkpoint::HfConfig& files, const MediaOptions&,
                                        common::WeightLoader& loader) {
  const Config config = parse_config(files);
  const Processing processing = read_processing(files, config);
  return std::make_unique<Model>(describe(config, processing),
                                 std::make_unique<Processor>(processing), config,
                                 load_weights(loader, config, processing), &forward);
}

/// As transformers names its modules. Source: transformers 5.24, conversion_mapping.py.
constexpr std::array<common::RenamedPart, 15> kModules{{
    {"vision_backbone.image_vit.transformer.resblocks.", "vision_tower.layers."},
    {"vision_backbone.image_vit.", "vision_tower."},
    {"vision_backbone.", "multi_modal_projector."},
    {".attention_norm", ".layer_norm1"},
    {".ffn_norm", ".layer_norm2"},
    {".attention.", ".self_attn."},
    {".feed_forward.w1", ".mlp.fc1"},
    {".feed_forward.w2", ".mlp.fc2"},
    {".wq", ".q_proj"},
    {".wk", ".k_proj"},
    {".wv", ".v_proj"},
    {".wo", ".o_proj"},
    {"image_projector.w1", "image_projector.gate_proj"},
    {"image_projector.w2", "image_projector.down_proj"},
    {"image_projector.w3", "image_projector.up_proj"},
}};
constexpr std::array<common::OtherNames, 1> kOtherNames{{
    {"", "vision_tower.patch_embedding.weight", kModules},
}};

}  // namespace

const ModelFamily& family() noexcept {
  static constexpr ModelFamily kFamily{
      .name = "molmo2",
      .architectures = kArchitectures,
      .anchor_folder = "",
      .anchor_tensor = "vision_backbone.image_vit.patch_embedding.weight",
      .make = &make,
      .item_options = {.image = kImageOptions},
      .other_names = kOtherNames,
      .bfloat16_tolerance = 0.075};
  return kFamily;
}

}  // namespace fovea::molmo2
