// Cohere2-Vision and Aya Vision behind the model protocol: one path whose unit is a view, a tile or
// the thumbnail.
#include "models/cohere_vision/model.h"

#include <array>
#include <memory>
#include <utility>

#include "core/check.h"
#include "models/cohere_vision/processor.h"
#include "models/common/views/model.h"

namespace fovea::cohere_vision {

namespace {

common::ViewTower describe(const Config& c, const Processing& p) {
  common::ViewTower tower{.width = c.text_hidden_size,
                          .paths = {{.layout = common::siglip_layout(c.tower)}},
                          .facts = common::siglip_facts(c.tower)};
  tower.facts.emplace_back("tiles", cat(p.min_tiles, "..", p.max_tiles, " and a thumbnail"));
  return tower;
}

using Model = common::PlainViewModel<Config, Weights>;

template <Format kFormat>
std::unique_ptr<EncoderGraphModel> make(const checkpoint::HfConfig& files,
                                        const MediaOptions& media, common::WeightLoader& loader) {
  const Config config = parse_config(files, kFormat);
  const Processing processing = read_processing(files, config, media);
  Weights weights = load_weights(loader, config, processing.views.scaling.table());
  return std::make_unique<Model>(describe(config, processing),
                                 std::make_unique<Processor>(processing), config,
                                 std::move(weights), &forward);
}

constexpr std::string_view kAnchor = "vision_tower.vision_model.embeddings.patch_embedding.weight";
constexpr std::array<std::string_view, 1> kCohere2{"Cohere2VisionForConditionalGeneration"};
constexpr std::array<std::string_view, 1> kAya{"AyaVisionForConditionalGeneration"};

}  // namespace

const ModelFamily& cohere2_family() noexcept {
  static constexpr ModelFamily kFamily{.name = "cohere_vision",
                                       .architectures = kCohere2,
                                       .anchor_folder = "",
                                       .anchor_tensor = kAnchor,
                                       .make = &make<Format::kCohere2>};
  return kFamily;
}

const ModelFamily& aya_family() noexcept {
  static constexpr ModelFamily kFamily{.name = "cohere_vision",
                                       .architectures = kAya,
                                       .anchor_folder = "",
                                       .anchor_tensor = kAnchor,
                                       .make = &make<Format::kAya>};
  return kFamily;
}

}  // namespace fovea::cohere_vision
