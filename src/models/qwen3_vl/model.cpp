// Qwen3-VL behind the model protocol. Source: docs/reference/qwen_glm.md, "Encoder graphs".
#include "models/qwen3_vl/model.h"

#include <array>
#include <memory>
#include <span>
#include <string_view>
#include <utility>

#include "core/check.h"
#include "models/common/grid/model.h"
#include "models/common/grid/processor_file.h"
#include "models/qwen3_vl/config.h"

namespace fovea::qwen3_vl {

namespace {

constexpr auto kVideoOptions = std::to_array<std::string_view>({"size", "fps", "num_frames"});

constexpr std::array kArchitectures =
    std::to_array<std::string_view>({"Qwen3VLForConditionalGeneration",
                                     "Qwen3VLMoeForConditionalGeneration",
                                     "Qwen3_5ForConditionalGeneration",
                                     "Qwen3_5MoeForConditionalGeneration",
                                     "Qwen4ExpForConditionalGeneration",
                                     "InternS1ProForConditionalGeneration",
                                     "InternS2PreviewForConditionalGeneration",
                                     "InternS2MobiusForConditionalGeneration",
                                     "CohereCompassForConditionalGeneration",
                                     "Qwen3OmniMoeForConditionalGeneration",
                                     "Qwen3OmniMoeThinkerForConditionalGeneration",
                                     "ClefOmniForJointSchema",
                                     "ColQwen3",
                                     "ColQwen3_5",
                                     "OpsColQwen3Model",
                                     "Qwen3VLNemotronEmbedModel",
                                     "ClefFlashForJointSchema",
                                     "D3ForSequenceClassification",
                                     "Cosmos3OmniForConditionalGeneration",
                                     "Cosmos3ForConditionalGeneration",
                                     "Alpamayo2Super"});
constexpr Prunable kPrunable{.evs = std::span(kArchitectures).first<9>(),
                             .vidcom2 = std::span(kArchitectures).first<8>()};

common::GridTower describe(const Config& c) {
  return {.main_width = c.out_hidden_size,
          .out_width = c.out_width(),
          .attention_parity_rows = common::attention_parity(c.hidden_size, c.intermediate_size),
          .team_heads = c.num_heads,
          .facts = {{"depth", cat(c.depth)},
                    {"hidden_size", cat(c.hidden_size)},
                    {"intermediate_size", cat(c.intermediate_size)},
                    {"num_heads", cat(c.num_heads)},
                    {"num_position_embeddings", cat(c.num_position_embeddings)}}};
}

std::unique_ptr<EncoderGraphModel> make(const checkpoint::HfConfig& files,
                                        const MediaOptions& media, common::WeightLoader& loader) {
  const Config config = parse_config(files);
  common::GridProcessing processing = config.has_frame_limits
                                          ? common::read_frame_processing(files, config.grid, media)
                                          : read_processing(files, config.grid, media);
  Weights weights = load_weights(loader, config, processing.scaling.table());
  return std::make_unique<common::PlainGridModel<Config, Weights>>(
      describe(config), std::move(processing), config, std::move(weights), &forward);
}

}  // namespace

const ModelFamily& family() noexcept {
  static constexpr ModelFamily kFamily{
      .name = "qwen3_vl",
      .architectures = kArchitectures,
      .anchor_folder = "visual.",
      .anchor_tensor = "patch_embed.proj.weight",
      .make = &make,
      .has_pixel_range = true,
      .item_options = {.image = common::kPixelOptions, .video = kVideoOptions},
      .other_folder = "",
      .prunable = kPrunable};
  return kFamily;
}

}  // namespace fovea::qwen3_vl
