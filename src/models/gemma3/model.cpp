// Gemma 3 behind the model protocol: one path whose unit is a view, the whole image or a crop.
#include "models/gemma3/model.h"

#include <array>
#include <memory>
#include <string_view>
#include <utility>

#include "core/check.h"
#include "models/common/views/model.h"
#include "models/gemma3/processor.h"

namespace fovea::gemma3 {

namespace {

constexpr auto kImageOptions = std::to_array<std::string_view>(
    {"do_pan_and_scan", "pan_and_scan_min_crop_size", "pan_and_scan_max_num_crops",
     "pan_and_scan_min_ratio_to_activate"});

common::ViewTower describe(const Config& c, const PanAndScan& rule) {
  common::ViewTower tower{.width = c.text_hidden_size,
                          .paths = {{.layout = common::siglip_layout(c.tower)}},
                          .facts = common::siglip_facts(c.tower)};
  tower.facts.emplace_back(
      "pan and scan", rule.is_on
                          ? cat("up to ", rule.max_crops, " crops from a ratio of ", rule.min_ratio)
                          : "off");
  return tower;
}

using Model = common::PlainViewModel<Config, Weights>;

std::unique_ptr<EncoderGraphModel> make(const checkpoint::HfConfig& files,
                                        const MediaOptions& media, common::WeightLoader& loader) {
  const Config config = parse_config(files);
  const Processing processing = read_processing(files, config, media);
  Weights weights = load_weights(loader, config, processing.views.scaling.table());
  return std::make_unique<Model>(describe(config, processing.pan_and_scan),
                                 std::make_unique<Processor>(processing), config,
                                 std::move(weights), &forward);
}

constexpr std::array<std::string_view, 1> kArchitectures{"Gemma3ForConditionalGeneration"};

}  // namespace

const ModelFamily& family() noexcept {
  static constexpr ModelFamily kFamily{
      .name = "gemma3",
      .architectures = kArchitectures,
      .anchor_folder = "",
      .anchor_tensor = "vision_tower.vision_model.embeddings.patch_embedding.weight",
      .make = &make,
      .item_options = {.image = kImageOptions},
      .other_names = common::kNamesWithoutVisionModel};
  return kFamily;
}

}  // namespace fovea::gemma3
