// Cohere2-Vision and Aya Vision behind the model protocol: one path whose unit is a view, a tile or
// the thumbnail.
#include "models/cohere_vision/model.h"

#include <array>
#include <memory>
#include <string_view>
#include <utility>

#include "core/check.h"
#include "models/cohere_vision/processor.h"
#include "models/common/views/model.h"

namespace fovea::cohere_vision {

namespace {

constexpr auto kImageOptions =
    std::to_array<std::string_view>({"min_patches", "max_patches", "crop_to_patches"});

common::ViewTower describe(const Config& c, const Processing& p) {
  return {.width = c.text_hidden_size,
          .paths = {{.layout = common::siglip_layout(c.tower)}},
          .facts = common::siglip_facts(
              c.tower, {{"tiles", cat(p.min_tiles, "..", p.max_tiles, " and a thumbnail")}})};
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

/// The architectures, in the order of Format.
constexpr std::array<std::string_view, 2> kArchitectures{"Cohere2VisionForConditionalGeneration",
                                                         "AyaVisionForConditionalGeneration"};

template <Format kFormat>
constexpr ModelFamily kFamily{
    .name = "cohere_vision",
    .architectures = {&kArchitectures[static_cast<std::size_t>(kFormat)], 1},
    .anchor_folder = "",
    .anchor_tensor = "vision_tower.vision_model.embeddings.patch_embedding.weight",
    .make = &make<kFormat>,
    .item_options = {.image = std::span(kImageOptions).first(kFormat == Format::kAya ? 2 : 3)},
    .other_names = common::kNamesWithoutVisionModel};

}  // namespace

const ModelFamily& cohere2_family() noexcept { return kFamily<Format::kCohere2>; }
const ModelFamily& aya_family() noexcept { return kFamily<Format::kAya>; }

}  // namespace fovea::cohere_vision
