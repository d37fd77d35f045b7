// PaddleOCR-VL behind the model protocol. Source: docs/reference/paddleocr_vl.md, "Encoder graphs".
#include "models/paddleocr_vl/model.h"

#include <array>
#include <memory>
#include <utility>

#include "core/check.h"
#include "models/common/grid/model.h"
#include "models/common/grid/processor_file.h"

namespace fovea::paddleocr_vl {

namespace {

constexpr std::array<std::string_view, 1> kArchitectures{"PaddleOCRVLForConditionalGeneration"};

common::GridTower describe(const Config& c) {
  return {.main_width = c.text_hidden_size,
          .out_width = c.text_hidden_size,
          .attention_parity_rows = common::attention_parity(c.hidden_size, c.intermediate_size),
          .team_heads = c.num_attention_heads,
          .facts = common::transformer_facts(c, {{"image_size", cat(c.image_size)}})};
}

std::unique_ptr<EncoderGraphModel> make(const checkpoint::HfConfig& files,
                                        const MediaOptions& media, common::WeightLoader& loader) {
  const Config config = parse_config(files);
  common::GridProcessing processing = read_processing(files, config.grid, media);
  Weights weights = load_weights(loader, config, processing.scaling.table());
  return std::make_unique<common::PlainGridModel<Config, Weights>>(
      describe(config), std::move(processing), config, std::move(weights), &forward);
}

/// As transformers names its modules. Source: transformers 5.24, conversion_mapping.py.
constexpr std::array<common::RenamedPart, 1> kModules{{
    {"mlp_AR.", "projector."},
}};
constexpr std::array<common::OtherNames, 1> kOtherNames{{
    {"model.", "projector.pre_norm.weight", kModules},
}};

}  // namespace

const ModelFamily& family() noexcept {
  static constexpr ModelFamily kFamily{
      .name = "paddleocr_vl",
      .architectures = kArchitectures,
      .anchor_folder = "",
      .anchor_tensor = "visual.vision_model.embeddings.patch_embedding.weight",
      .make = &make,
      .has_pixel_range = true,
      .item_options = {.image = common::kPixelOptions},
      .other_names = kOtherNames};
  return kFamily;
}

}  // namespace fovea::paddleocr_vl
