// LLaVA behind the model protocol: one path whose unit is a view, be it the whole image, a part of
// its canvas or a frame. Source: docs/reference/llava.md, "Encoder graphs".
#include "models/llava/model.h"

#include <array>
#include <memory>
#include <utility>

#include "core/check.h"
#include "models/common/views/model.h"
#include "models/llava/processor.h"

namespace fovea::llava {

namespace {

common::ViewLayout layout_of(const Config& c) {
  return c.kind == Tower::kClip ? common::clip_layout(c.tower) : common::siglip_layout(c.tower);
}

common::ViewTower describe(const Config& c, const Processing& p) {
  common::ViewTower tower{.width = c.text_hidden_size,
                          .paths = {{.layout = layout_of(c)}},
                          .facts = common::siglip_facts(c.tower)};
  const bool takes_videos = c.format == Format::kOnevision && p.views.video_refusal.empty();
  if (takes_videos) tower.modalities.push_back(Modality::kVideo);
  tower.facts.emplace_back("tower", c.kind == Tower::kClip ? "CLIP" : "SigLIP");
  tower.facts.emplace_back(
      "canvases", p.canvases.empty() ? "none" : cat(p.canvases.size(), ", and the whole image"));
  return tower;
}

using Model = common::PlainViewModel<Config, Weights>;

template <Format kFormat>
std::unique_ptr<EncoderGraphModel> make(const checkpoint::HfConfig& files,
                                        const MediaOptions& media, common::WeightLoader& loader) {
  const Config config = parse_config(files, kFormat);
  const Processing processing = read_processing(files, config, media);
  Weights weights = load_weights(loader, config, processing.views.scaling.table());
  return std::make_unique<Model>(
      describe(config, processing), std::make_unique<Processor>(processing), config,
      std::move(weights), &forward, kFormat == Format::kLlava ? nullptr : &assemble_part);
}

/// The architectures, in the order of Format.
constexpr std::array<std::string_view, 3> kArchitectures{"LlavaForConditionalGeneration",
                                                         "LlavaNextForConditionalGeneration",
                                                         "LlavaOnevisionForConditionalGeneration"};

template <Format kFormat>
constexpr ModelFamily kFamily{
    .name = "llava",
    .architectures = {&kArchitectures[static_cast<std::size_t>(kFormat)], 1},
    .anchor_folder = "",
    .anchor_tensor = "vision_tower.vision_model.embeddings.patch_embedding.weight",
    .make = &make<kFormat>,
    .other_names = common::kNamesWithoutVisionModel};

}  // namespace

const ModelFamily& family() noexcept { return kFamily<Format::kLlava>; }
const ModelFamily& next_family() noexcept { return kFamily<Format::kNext>; }
const ModelFamily& onevision_family() noexcept { return kFamily<Format::kOnevision>; }

}  // namespace fovea::llava
