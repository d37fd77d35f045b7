// HunyuanOCR behind the model protocol. Source: docs/reference/hunyuan_vl.md, "Encoder graphs".
#include "models/hunyuan_vl/model.h"

#include <array>
#include <memory>
#include <utility>

#include "core/check.h"
#include "models/common/grid/model.h"
#include "models/common/grid/processor_file.h"
#include "models/hunyuan_vl/processor.h"

namespace fovea::hunyuan_vl {

namespace {

constexpr std::array<std::string_view, 1> kArchitectures{"HunYuanVLForConditionalGeneration"};

common::GridTower describe(const Config& c) {
  return {.main_width = c.text_hidden_size,
          .out_width = c.text_hidden_size,
          .attention_parity_rows = common::attention_parity(c.hidden_size, c.intermediate_size),
          .facts = common::transformer_facts(c, {{"max_image_size", cat(c.max_image_size)}})};
}

std::unique_ptr<EncoderGraphModel> make(const checkpoint::HfConfig& files,
                                        const MediaOptions& media, common::WeightLoader& loader) {
  const Config config = parse_config(files);
  common::GridProcessing processing = read_processing(files, config.grid, media);
  Weights weights = load_weights(loader, config, processing.scaling.table());
  return std::make_unique<common::PlainGridModel<Config, Weights, RowInputs>>(
      describe(config), std::make_unique<const Processor>(std::move(processing)), config,
      std::move(weights), &forward);
}

/// As transformers names its modules. Source: transformers 5.24, conversion_mapping.py.
constexpr std::array<common::RenamedPart, 8> kModules{{
    {"vit.perceive.proj.0", "vision_tower.patch_merger.proj_conv"},
    {"vit.perceive.proj.2", "vision_tower.patch_merger.proj_out"},
    {"vit.perceive.", "vision_tower.patch_merger."},
    {"vit.", "vision_tower."},
    {".input_layernorm", ".layer_norm1"},
    {".post_attention_layernorm", ".layer_norm2"},
    {".dense_h_to_4h", ".fc1"},
    {".dense_4h_to_h", ".fc2"},
}};
constexpr std::array<common::OtherNames, 1> kOtherNames{{
    {"", "vision_tower.embeddings.patch_embedding.weight", kModules},
}};

}  // namespace

const ModelFamily& family() noexcept {
  static constexpr ModelFamily kFamily{.name = "hunyuan_vl",
                                       .architectures = kArchitectures,
                                       .anchor_folder = "",
                                       .anchor_tensor = "vit.embeddings.patch_embedding.weight",
                                       .make = &make,
                                       .has_pixel_range = true,
                                       .item_options = {.image = common::kPixelOptions},
                                       .other_names = kOtherNames};
  return kFamily;
}

}  // namespace fovea::hunyuan_vl
