// GLM-4.1V and its successors behind the model protocol. Source: docs/reference/qwen_glm.md,
// "Encoder graphs".
#include "models/glm4v/model.h"

#include <array>
#include <memory>
#include <utility>

#include "core/check.h"
#include "models/common/grid/model.h"
#include "models/common/grid/processor_file.h"
#include "models/glm4v/canvas.h"
#include "models/glm4v/config.h"

namespace fovea::glm4v {

namespace {

constexpr std::array kArchitectures = std::to_array<std::string_view>(
    {"Glm4vForConditionalGeneration", "Glm4vMoeForConditionalGeneration",
     "Glm46VForConditionalGeneration", "GlmOcrForConditionalGeneration"});
constexpr std::array<std::string_view, 1> kCanvasArchitectures{"Glm5NextForConditionalGeneration"};
constexpr auto kCanvasOptions =
    std::to_array<std::string_view>({"min_image_tokens", "max_image_tokens"});

common::GridTower describe(const Config& c) {
  const std::int64_t mlp_width = 3 * c.mlp_width / 2;  // three matrices of that width
  return {.main_width = c.out_hidden_size,
          .out_width = c.out_hidden_size,
          .attention_parity_rows = common::attention_parity(c.hidden_size, mlp_width),
          .team_heads = c.num_heads,
          .facts = {{"depth", cat(c.depth)},
                    {"hidden_size", cat(c.hidden_size)},
                    {"out_hidden_size", cat(c.out_hidden_size)},
                    {"intermediate_size", cat(c.intermediate_size)},
                    {"num_heads", cat(c.num_heads)},
                    {"image_size", cat(c.image_size)}}};
}

std::unique_ptr<EncoderGraphModel> make(const checkpoint::HfConfig& files,
                                        const MediaOptions& media, common::WeightLoader& loader) {
  const Config config = parse_config(files);
  const auto read = config.has_canvas ? &read_canvas_processing : &read_processing;
  common::GridProcessing processing = read(files, config.grid, media);
  Weights weights = load_weights(loader, config, processing.scaling.table());
  return std::make_unique<common::PlainGridModel<Config, Weights>>(
      describe(config), std::move(processing), config, std::move(weights), &forward);
}

constexpr ModelFamily family_of(std::span<const std::string_view> architectures,
                                const ItemOptionKeys& item_options) {
  return {.name = "glm4v",
          .architectures = architectures,
          .anchor_folder = "visual.",
          .anchor_tensor = "patch_embed.proj.weight",
          .make = &make,
          .has_pixel_range = true,
          .item_options = item_options};
}

}  // namespace

const ModelFamily& family() noexcept {
  static constexpr ModelFamily kFamily =
      family_of(kArchitectures, {.image = common::kSizeOption, .video = common::kSizeOption});
  return kFamily;
}

const ModelFamily& canvas_family() noexcept {
  static constexpr ModelFamily kFamily =
      family_of(kCanvasArchitectures, {.image = kCanvasOptions, .video = kCanvasOptions});
  return kFamily;
}

}  // namespace fovea::glm4v
