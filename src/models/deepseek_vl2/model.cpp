// DeepSeek-VL2 behind the model protocol: one path whose unit is a view, the global one or a tile.
// Source: docs/reference/deepseek_vl2.md, "Encoder graphs".
#include "models/deepseek_vl2/model.h"

#include <array>
#include <memory>
#include <utility>

#include "core/check.h"
#include "models/common/views/model.h"
#include "models/deepseek_vl2/processor.h"

namespace fovea::deepseek_vl2 {

namespace {

constexpr std::array<std::string_view, 1> kArchitectures{"DeepseekVLV2ForCausalLM"};

common::ViewTower describe(const Config& c) {
  common::ViewTower tower{.width = c.n_embed,
                          .paths = {{.layout = layout_of(c)}},
                          .facts = common::siglip_facts(c.tower)};
  tower.facts.emplace_back("tokens of a view", cat(c.tokens()));
  tower.facts.emplace_back("resolutions", cat(c.candidate_resolutions.size()));
  return tower;
}

std::unique_ptr<EncoderGraphModel> make(const checkpoint::HfConfig& files,
                                        const MediaOptions& media, common::WeightLoader& loader) {
  const Config config = parse_config(files);
  Processing processing = read_processing(files, media);
  Weights weights = load_weights(loader, config, processing.scaling.table());
  return std::make_unique<common::PlainViewModel<Config, Weights>>(
      describe(config), std::make_unique<Processor>(config, std::move(processing)), config,
      std::move(weights), &forward, &assemble_part);
}

}  // namespace

const ModelFamily& family() noexcept {
  static constexpr ModelFamily kFamily{.name = "deepseek_vl2",
                                       .architectures = kArchitectures,
                                       .anchor_folder = "",
                                       .anchor_tensor = "vision.patch_embed.proj.weight",
                                       .make = &make};
  return kFamily;
}

}  // namespace fovea::deepseek_vl2
