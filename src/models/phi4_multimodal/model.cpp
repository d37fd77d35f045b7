// Phi-4-multimodal behind the model protocol. Source: docs/reference/phi4_multimodal.md, "Encoder
// graphs".
#include "models/phi4_multimodal/model.h"

#include <array>
#include <memory>
#include <string_view>
#include <utility>

#include "core/check.h"
#include "models/common/model.h"

namespace fovea::phi4_multimodal {

namespace {

constexpr auto kImageOptions = std::to_array<std::string_view>({"dynamic_hd"});

/// The name of transformers, and the vendor's.
constexpr std::array<std::string_view, 2> kArchitectures{"Phi4MultimodalForCausalLM",
                                                         "Phi4MMForCausalLM"};

using Model = common::OwnInputsModel<common::TowerModel, Processor, Config, Weights, Inputs>;

common::TowerAnswers describe(const Config& c, const Processing& p) {
  const std::int64_t side = c.tower.view.tokens_side();
  return {.spec = {.modalities = {Modality::kImage},
                   .main_width = c.text_hidden_size,
                   .out_width = c.text_hidden_size,
                   .min_token_budget = side * (side + 1) + 1},  // of the global view
          .facts = common::siglip_facts(
              c.tower, {{"views", cat("up to ", p.dynamic_hd, ", and a global one")}})};
}

std::unique_ptr<EncoderGraphModel> make(const checkpoint::HfConfig& files,
                                        const MediaOptions& media, common::WeightLoader& loader) {
  const Config config = parse_config(files);
  Processing processing = read_processing(files, config, media);
  Weights weights = load_weights(loader, config, processing.views.scaling);
  return std::make_unique<Model>(describe(config, processing),
                                 std::make_unique<Processor>(std::move(processing)), config,
                                 std::move(weights), &forward);
}

}  // namespace

const ModelFamily& family() noexcept {
  static constexpr ModelFamily kFamily{
      .name = "phi4_multimodal",
      .architectures = kArchitectures,
      .anchor_folder = "",
      .anchor_tensor =
          "embed_tokens_extend.image_embed.img_processor.embeddings.patch_embedding.weight",
      .make = &make,
      .item_options = {.image = kImageOptions}};
  return kFamily;
}

}  // namespace fovea::phi4_multimodal
