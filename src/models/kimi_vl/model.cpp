// Kimi-VL behind the model protocol. Source: docs/reference/kimi_vl.md, "Encoder graphs".
#include "models/kimi_vl/model.h"

#include <array>
#include <memory>
#include <utility>

#include "core/check.h"
#include "models/common/grid/model.h"
#include "models/kimi_vl/config.h"
#include "models/kimi_vl/processor.h"

namespace fovea::kimi_vl {

namespace {

constexpr std::array<std::string_view, 1> kArchitectures{"KimiVLForConditionalGeneration"};

common::GridTower describe(const Config& c) {
  return {.main_width = c.text_hidden_size,
          .out_width = c.text_hidden_size,
          .attention_parity_rows = common::attention_parity(c.hidden_size, c.intermediate_size),
          .facts = {{"num_hidden_layers", cat(c.num_hidden_layers)},
                    {"hidden_size", cat(c.hidden_size)},
                    {"intermediate_size", cat(c.intermediate_size)},
                    {"num_attention_heads", cat(c.num_attention_heads)},
                    {"position table", cat(c.init_pos_emb_height, "x", c.init_pos_emb_width)}}};
}

std::unique_ptr<EncoderGraphModel> make(const checkpoint::HfConfig& files,
                                        const MediaOptions& media, common::WeightLoader& loader) {
  const Config config = parse_config(files);
  Processing processing = read_processing(files, config.grid, media);
  const common::PixelScaling& scaling = processing.grid.scaling;
  Weights weights = load_weights(
      loader, config, media::to_tensor_normalize_table(scaling.image_mean, scaling.image_std));
  return std::make_unique<common::PlainGridModel<Config, Weights>>(
      describe(config), std::make_unique<Processor>(std::move(processing)), config,
      std::move(weights), &forward);
}

}  // namespace

const ModelFamily& family() noexcept {
  static constexpr ModelFamily kFamily{.name = "kimi_vl",
                                       .architectures = kArchitectures,
                                       .anchor_folder = "",
                                       .anchor_tensor = "vision_tower.patch_embed.proj.weight",
                                       .make = &make};
  return kFamily;
}

}  // namespace fovea::kimi_vl
