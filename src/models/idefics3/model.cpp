// Idefics3 and SmolVLM behind the model protocol: one path whose unit is a view, be it a tile, the
// whole image or a frame.
#include "models/idefics3/model.h"

#include <array>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "core/check.h"
#include "models/common/views/model.h"
#include "models/idefics3/processor.h"

namespace fovea::idefics3 {

namespace {

constexpr auto kImageOptions = std::to_array<std::string_view>({"size", "do_image_splitting"});

common::ViewTower describe(const Config& c, const Processing& p) {
  common::ViewTower tower{.width = c.text_hidden_size,
                          .paths = {{.layout = common::siglip_layout(c.tower)}},
                          .facts = common::siglip_facts(c.tower)};
  if (p.takes_videos && p.views.video_refusal.empty()) tower.modalities.push_back(Modality::kVideo);
  tower.facts.emplace_back(
      "tiles", p.do_image_splitting
                   ? cat("of an image of up to ", p.longest_edge, " pixels a side, then all of it")
                   : "none");
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

/// The architectures, in the order of Format.
constexpr std::array<std::string_view, 2> kArchitectures{"Idefics3ForConditionalGeneration",
                                                         "SmolVLMForConditionalGeneration"};

template <Format kFormat>
constexpr ModelFamily kFamily{
    .name = "idefics3",
    .architectures = {&kArchitectures[static_cast<std::size_t>(kFormat)], 1},
    .anchor_folder = "",
    .anchor_tensor = "vision_model.embeddings.patch_embedding.weight",
    .make = &make<kFormat>,
    .item_options = {.image = kImageOptions}};

}  // namespace

const ModelFamily& family() noexcept { return kFamily<Format::kIdefics3>; }
const ModelFamily& smolvlm_family() noexcept { return kFamily<Format::kSmolVlm>; }

}  // namespace fovea::idefics3
