// Idefics3 and SmolVLM behind the model protocol: one path whose unit is a view, be it a tile, the
// whole image or a frame.
#include "models/idefics3/model.h"

#include <array>
#include <memory>
#include <utility>
#include <vector>

#include "core/check.h"
#include "models/common/views/model.h"
#include "models/idefics3/processor.h"

namespace fovea::idefics3 {

namespace {

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

constexpr std::string_view kAnchor = "vision_model.embeddings.patch_embedding.weight";
constexpr std::array<std::string_view, 1> kIdefics3{"Idefics3ForConditionalGeneration"};
constexpr std::array<std::string_view, 1> kSmolVlm{"SmolVLMForConditionalGeneration"};

}  // namespace

const ModelFamily& family() noexcept {
  static constexpr ModelFamily kFamily{.name = "idefics3",
                                       .architectures = kIdefics3,
                                       .anchor_folder = "",
                                       .anchor_tensor = kAnchor,
                                       .make = &make<Format::kIdefics3>};
  return kFamily;
}

const ModelFamily& smolvlm_family() noexcept {
  static constexpr ModelFamily kFamily{.name = "idefics3",
                                       .architectures = kSmolVlm,
                                       .anchor_folder = "",
                                       .anchor_tensor = kAnchor,
                                       .make = &make<Format::kSmolVlm>};
  return kFamily;
}

}  // namespace fovea::idefics3
