// CLIP behind the model protocol: one path whose unit is a view of the whole image.
#include "models/clip/model.h"

#include <array>
#include <memory>
#include <utility>

#include "core/check.h"
#include "models/common/views/model.h"
#include "models/common/views/whole.h"

namespace fovea::clip {

namespace {

common::ViewTower describe(const Config& c, TowerOutput output) {
  const std::int64_t patches = c.tower.view.patches();
  const bool vectors = output != TowerOutput::kRows;
  common::ViewTower tower{.width = vectors ? c.vector_width() : c.tower.hidden_size,
                          .paths = {{.layout = {.view = c.tower.view,
                                                .sequence = {.patches = patches},
                                                .tokens = 1 + patches,
                                                .stages = {},
                                                .chunk_stages = {}},
                                     .max_item_views = 1}},
                          .vectors = vectors,
                          .facts = common::siglip_facts(c.tower)};
  tower.facts.emplace_back("vector", cat(c.vector_width()));
  return tower;
}

using Model = common::PlainViewModel<Config, Weights>;

std::unique_ptr<EncoderGraphModel> make_vectors(const checkpoint::HfConfig& files,
                                                const MediaOptions& media,
                                                common::WeightLoader& loader, TowerOutput output) {
  const Config config = parse_config(files);
  common::WholeImage image = common::read_whole_image(files, media, "CLIPImageProcessor");
  common::check_view_side(files, image, config.tower.view.side_px);
  Weights weights = load_weights(loader, config, output, image.scaling.table());
  common::ViewTower tower = describe(config, output);
  auto processor = std::make_unique<common::WholeImageProcessor>(
      std::move(image), config.tower.view,
      common::WholeImageRows{tower.paths.front().layout.tokens, tower.vectors});
  return std::make_unique<Model>(std::move(tower), std::move(processor), config, std::move(weights),
                                 &forward);
}

std::unique_ptr<EncoderGraphModel> make(const checkpoint::HfConfig& files,
                                        const MediaOptions& media, common::WeightLoader& loader) {
  return make_vectors(files, media, loader, TowerOutput::kRows);
}

constexpr std::array<std::string_view, 2> kProjected{"CLIPModel", "CLIPVisionModelWithProjection"};
constexpr std::array<std::string_view, 1> kAlone{"CLIPVisionModel"};

}  // namespace

const ModelFamily& family() noexcept {
  static constexpr ModelFamily kFamily{
      .name = "clip",
      .architectures = kProjected,
      .anchor_folder = "",
      .anchor_tensor = "vision_model.embeddings.patch_embedding.weight",
      .make = &make,
      .make_vectors = &make_vectors};
  return kFamily;
}

const ModelFamily& vision_family() noexcept {
  static constexpr ModelFamily kFamily{.name = "clip",
                                       .architectures = kAlone,
                                       .anchor_folder = "",
                                       .anchor_tensor = "embeddings.patch_embedding.weight",
                                       .make = &make,
                                       .make_vectors = &make_vectors};
  return kFamily;
}

}  // namespace fovea::clip
