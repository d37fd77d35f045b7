// LFM2-VL behind the model protocol: one path whose items are one view or several. Source:
// docs/reference/lfm2_vl.md, "Encoder graphs".
#include "models/lfm2_vl/model.h"

#include <array>
#include <memory>
#include <string_view>
#include <utility>

#include "core/check.h"
#include "models/common/grid/model.h"
#include "models/lfm2_vl/processor.h"

namespace fovea::lfm2_vl {

namespace {

constexpr auto kImageOptions =
    std::to_array<std::string_view>({"min_tiles", "max_tiles", "do_image_splitting"});

constexpr std::array<std::string_view, 1> kArchitectures{"Lfm2VlForConditionalGeneration"};

common::GridTower describe(const Config& c, const Processing& p) {
  return {.main_width = c.text_hidden_size,
          .out_width = c.text_hidden_size,
          .facts = common::transformer_facts(
              c, {{"tiles", cat(p.min_tiles, "..", p.max_tiles, " of ", p.tile_size, "x",
                                p.tile_size, p.use_thumbnail ? " and a thumbnail" : "")}})};
}

std::unique_ptr<EncoderGraphModel> make(const checkpoint::HfConfig& files,
                                        const MediaOptions& media, common::WeightLoader& loader) {
  const Config config = parse_config(files);
  Processing processing = read_processing(files, config.grid, media);
  Weights weights = load_weights(loader, config, processing.grid.scaling.table());
  common::GridTower tower = describe(config, processing);
  return std::make_unique<common::PlainGridModel<Config, Weights>>(
      std::move(tower), std::make_unique<const Processor>(std::move(processing)), config,
      std::move(weights), &forward);
}

}  // namespace

const ModelFamily& family() noexcept {
  static constexpr ModelFamily kFamily{
      .name = "lfm2_vl",
      .architectures = kArchitectures,
      .anchor_folder = "",
      .anchor_tensor = "vision_tower.vision_model.embeddings.patch_embedding.weight",
      .make = &make,
      .item_options = {.image = kImageOptions},
      .other_names = common::kNamesWithoutVisionModel};
  return kFamily;
}

}  // namespace fovea::lfm2_vl
