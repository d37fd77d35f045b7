// Qwen2-VL behind the model protocol. Source: docs/reference/qwen_glm.md, "Encoder graphs".
#include "models/qwen2_vl/model.h"

#include <array>
#include <memory>
#include <utility>

#include "core/check.h"
#include "models/common/grid/model.h"
#include "models/common/grid/processor_file.h"
#include "models/qwen2_vl/config.h"

namespace fovea::qwen2_vl {

namespace {

constexpr std::array<std::string_view, 2> kArchitectures{"Qwen2VLForConditionalGeneration",
                                                         "JinaVLForRanking"};

common::GridTower describe(const Config& c) {
  return {.main_width = c.hidden_size,
          .out_width = c.hidden_size,
          .attention_parity_rows = common::attention_parity(c.embed_dim, c.mlp_width()),
          .team_heads = c.num_heads,
          .facts = {{"depth", cat(c.depth)},
                    {"embed_dim", cat(c.embed_dim)},
                    {"MLP width", cat(c.mlp_width())},
                    {"num_heads", cat(c.num_heads)}}};
}

std::unique_ptr<EncoderGraphModel> make(const checkpoint::HfConfig& files,
                                        const MediaOptions& media, common::WeightLoader& loader) {
  const Config config = parse_config(files);
  common::GridProcessing processing = common::read_frame_processing(files, config.grid, media);
  Weights weights = load_weights(loader, config, processing.scaling.table());
  return std::make_unique<common::PlainGridModel<Config, Weights>>(
      describe(config), std::move(processing), config, std::move(weights), &forward);
}

}  // namespace

const ModelFamily& family() noexcept {
  static constexpr ModelFamily kFamily{
      .name = "qwen2_vl",
      .architectures = kArchitectures,
      .anchor_folder = "visual.",
      .anchor_tensor = "patch_embed.proj.weight",
      .make = &make,
      .has_pixel_range = true,
      .item_options = {.image = common::kPixelOptions, .video = common::kFrameVideoOptions}};
  return kFamily;
}

}  // namespace fovea::qwen2_vl
