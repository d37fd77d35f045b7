// Nemotron Omni behind the model protocol. Source: docs/reference/nemotron_h_omni.md, "Encoder
// graphs".
#include "models/nemotron_h_omni/model.h"

#include <array>
#include <memory>
#include <utility>

#include "core/check.h"
#include "models/common/grid/model.h"

namespace fovea::nemotron_h_omni {

namespace {

constexpr std::array<std::string_view, 3> kArchitectures{"NemotronH_Nano_Omni_Reasoning_V3",
                                                         "NemotronH_Super_Omni_Reasoning_V3",
                                                         "NemotronH_Omni_Reasoning_V3"};

common::GridTower describe(const Config& c) {
  return {
      .main_width = c.text_hidden_size,
      .out_width = c.text_hidden_size,
      .attention_parity_rows = common::attention_parity(c.hidden_size, c.intermediate_size),
      .facts = common::transformer_facts(c, {{"class and register tokens", cat(c.class_rows())}})};
}

using Model = common::OwnInputsModel<common::GridModel, Processor, Config, Weights, Inputs>;

std::unique_ptr<EncoderGraphModel> make(const checkpoint::HfConfig& files, const MediaOptions&,
                                        common::WeightLoader& loader) {
  const Config config = parse_config(files);
  Processing processing = read_processing(files, config);
  Weights weights = load_weights(loader, config, processing.grid.scaling);
  return std::make_unique<Model>(describe(config),
                                 std::make_unique<Processor>(std::move(processing)), config,
                                 std::move(weights), &forward);
}

}  // namespace

const ModelFamily& family() noexcept {
  static constexpr ModelFamily kFamily{
      .name = "nemotron_h_omni",
      .architectures = kArchitectures,
      .anchor_folder = "",
      .anchor_tensor = "vision_model.radio_model.model.patch_generator.embedder.weight",
      .make = &make};
  return kFamily;
}

}  // namespace fovea::nemotron_h_omni
