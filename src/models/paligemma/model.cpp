// PaliGemma behind the model protocol: one path whose unit is a view, the whole image.
#include "models/paligemma/model.h"

#include <array>
#include <memory>
#include <utility>

#include "models/common/views/model.h"
#include "models/paligemma/processor.h"

namespace fovea::paligemma {

namespace {

common::ViewTower describe(const Config& c) {
  return {.width = c.projection_dim,
          .paths = {{.layout = common::siglip_layout(c.tower), .max_item_views = 1}},
          .facts = common::siglip_facts(c.tower)};
}

using Model = common::PlainViewModel<Config, Weights>;

std::unique_ptr<EncoderGraphModel> make(const checkpoint::HfConfig& files,
                                        const MediaOptions& media, common::WeightLoader& loader) {
  const Config config = parse_config(files);
  common::ViewProcessing processing = read_processing(files, config, media);
  Weights weights = load_weights(loader, config, processing.scaling.table());
  return std::make_unique<Model>(describe(config),
                                 std::make_unique<Processor>(std::move(processing)), config,
                                 std::move(weights), &forward);
}

constexpr std::array<std::string_view, 1> kArchitectures{"PaliGemmaForConditionalGeneration"};

}  // namespace

const ModelFamily& family() noexcept {
  static constexpr ModelFamily kFamily{
      .name = "paligemma",
      .architectures = kArchitectures,
      .anchor_folder = "",
      .anchor_tensor = "vision_tower.vision_model.embeddings.patch_embedding.weight",
      .make = &make,
      .other_names = common::kNamesWithoutVisionModel};
  return kFamily;
}

}  // namespace fovea::paligemma
