// The Pixtral tower behind the model protocol. Source: docs/reference/mistral3.md, "Encoder
// graphs".
#include "models/mistral3/model.h"

#include <array>
#include <memory>
#include <string_view>
#include <utility>

#include "core/check.h"
#include "models/common/grid/model.h"

namespace fovea::mistral3 {

namespace {

constexpr auto kImageOptions = std::to_array<std::string_view>({"size"});

common::GridTower describe(const Config& c) {
  const std::int64_t mlp_width = 3 * c.intermediate_size / 2;  // three matrices of that width
  return {.main_width = c.text_hidden_size,
          .out_width = c.text_hidden_size,
          .attention_parity_rows = common::attention_parity(c.hidden_size, mlp_width),
          .team_heads = c.num_attention_heads,
          .facts = common::transformer_facts(c, {{"image_size", cat(c.image_size)}})};
}

std::unique_ptr<EncoderGraphModel> make(const checkpoint::HfConfig& files,
                                        const MediaOptions& media, common::WeightLoader& loader) {
  const Config config = parse_config(files);
  common::GridProcessing processing = read_processing(files, config, media);
  Weights weights = load_weights(loader, config, processing.scaling.table());
  return std::make_unique<common::PlainGridModel<Config, Weights>>(
      describe(config), std::move(processing), config, std::move(weights), &forward);
}

constexpr std::string_view kAnchor = "vision_tower.patch_conv.weight";
constexpr std::array<std::string_view, 1> kMistral3{"Mistral3ForConditionalGeneration"};
constexpr std::array<std::string_view, 1> kPixtral{"LlavaForConditionalGeneration"};
/// The published name, and that of transformers.
constexpr std::array<std::string_view, 2> kLightOnOcr{"LightOnOCRForConditionalGeneration",
                                                      "LightOnOcrForConditionalGeneration"};

}  // namespace

const ModelFamily& family() noexcept {
  static constexpr ModelFamily kFamily{.name = "mistral3",
                                       .architectures = kMistral3,
                                       .anchor_folder = "",
                                       .anchor_tensor = kAnchor,
                                       .make = &make,
                                       .item_options = {.image = kImageOptions}};
  return kFamily;
}

const ModelFamily& pixtral_family() noexcept {
  static constexpr ModelFamily kFamily{.name = "mistral3",
                                       .architectures = kPixtral,
                                       .anchor_folder = "",
                                       .anchor_tensor = kAnchor,
                                       .make = &make,
                                       .item_options = {.image = kImageOptions},
                                       .tower = "pixtral"};
  return kFamily;
}

const ModelFamily& light_on_ocr_family() noexcept {
  static constexpr ModelFamily kFamily{.name = "mistral3",
                                       .architectures = kLightOnOcr,
                                       .anchor_folder = "",
                                       .anchor_tensor = "vision_encoder.patch_conv.weight",
                                       .make = &make,
                                       .item_options = {.image = kImageOptions}};
  return kFamily;
}

}  // namespace fovea::mistral3
