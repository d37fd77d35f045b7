// MiniCPM-V 4.6 behind the model protocol: one path whose items are views of two sizes. Source:
// docs/reference/minicpmv4_6.md, "Encoder graphs".
#include "models/minicpmv4_6/model.h"

#include <array>
#include <memory>
#include <string_view>
#include <utility>

#include "core/check.h"
#include "models/common/grid/model.h"
#include "models/minicpmv4_6/processor.h"

namespace fovea::minicpmv4_6 {

namespace {

constexpr auto kImageOptions = std::to_array<std::string_view>({"max_slice_nums", "slice_mode"});

constexpr std::array<std::string_view, 1> kArchitectures{"MiniCPMV4_6ForConditionalGeneration"};

common::GridTower describe(const Config& c, const Processing& p) {
  common::GridTower tower{.main_width = c.text_hidden_size,
                          .out_width = c.text_hidden_size,
                          .facts = common::siglip_facts(c.tower)};
  tower.facts.back() = {"position table", cat(c.tower.view.grid(), "x", c.tower.view.grid())};
  tower.facts.emplace_back("insert_layer_id", cat(c.insert_layer_id));
  tower.facts.emplace_back("slices", cat("up to ", p.image.max_slice_nums, " of the area of ",
                                         p.image.scale_resolution, "x", p.image.scale_resolution));
  return tower;
}

std::unique_ptr<EncoderGraphModel> make(const checkpoint::HfConfig& files,
                                        const MediaOptions& media, common::WeightLoader& loader) {
  const Config config = parse_config(files);
  const Processing processing = read_processing(files, config.grid, media);
  Weights weights = load_weights(loader, config, processing.grid.scaling.table());
  return std::make_unique<common::PlainGridModel<Config, Weights, WindowInputs>>(
      describe(config, processing), std::make_unique<const Processor>(processing), config,
      std::move(weights), &forward);
}

}  // namespace

const ModelFamily& family() noexcept {
  static constexpr ModelFamily kFamily{
      .name = "minicpmv4_6",
      .architectures = kArchitectures,
      .anchor_folder = "",
      .anchor_tensor = "vision_tower.embeddings.patch_embedding.weight",
      .make = &make,
      .item_options = {.image = kImageOptions}};
  return kFamily;
}

}  // namespace fovea::minicpmv4_6
