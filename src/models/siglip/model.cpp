// SigLIP behind the model protocol: one path whose unit is a view of the whole image.
#include "models/siglip/model.h"

#include <array>
#include <memory>
#include <utility>

#include "core/check.h"
#include "models/common/views/model.h"
#include "models/common/views/whole.h"

namespace fovea::siglip {

namespace {

using Config = common::SiglipConfig;

/// vision_config, or config.json where it is that of the vision part alone.
JsonView tower_of(const checkpoint::HfConfig& files) {
  const JsonView root = files.config.root();
  return root.find("vision_config").value_or(root);
}

common::ViewTower describe(const Config& c, TowerOutput output) {
  common::ViewTower tower{.width = c.hidden_size,
                          .paths = {{.layout = common::siglip_layout(c), .max_item_views = 1}},
                          .vectors = output != TowerOutput::kRows,
                          .facts = common::siglip_facts(c)};
  tower.facts.emplace_back("vector", cat(c.hidden_size));
  return tower;
}

using Model = common::PlainViewModel<Config, Weights>;

std::unique_ptr<EncoderGraphModel> make_vectors(const checkpoint::HfConfig& files,
                                                const MediaOptions& media,
                                                common::WeightLoader& loader, TowerOutput output) {
  const JsonView vision = tower_of(files);
  const Config config = common::read_siglip(vision);
  const bool has_head = vision.bool_or("vision_use_head", true);
  FOVEA_CHECK(has_head || output == TowerOutput::kRows, kUnsupported, vision.path(),
              ".vision_use_head: false, so the model makes no vectors");
  common::WholeImage image = common::read_whole_image(files, media, "SiglipImageProcessor");
  common::check_view_side(files, image, config.view.side_px);
  Weights weights = load_weights(loader, config, output, image.scaling.table());
  common::ViewTower tower = describe(config, output);
  auto processor = std::make_unique<common::WholeImageProcessor>(
      std::move(image), config.view, common::WholeImageRows{config.view.tokens(), tower.vectors});
  return std::make_unique<Model>(std::move(tower), std::move(processor), config, std::move(weights),
                                 &forward);
}

std::unique_ptr<EncoderGraphModel> make(const checkpoint::HfConfig& files,
                                        const MediaOptions& media, common::WeightLoader& loader) {
  return make_vectors(files, media, loader, TowerOutput::kRows);
}

constexpr std::array<std::string_view, 2> kArchitectures{"SiglipModel", "SiglipVisionModel"};

}  // namespace

const ModelFamily& family() noexcept {
  static constexpr ModelFamily kFamily{.name = "siglip",
                                       .architectures = kArchitectures,
                                       .anchor_folder = "",
                                       .anchor_tensor = "embeddings.patch_embedding.weight",
                                       .make = &make,
                                       .make_vectors = &make_vectors};
  return kFamily;
}

}  // namespace fovea::siglip
