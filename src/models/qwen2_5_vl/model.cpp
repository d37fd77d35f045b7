// Qwen2.5-VL behind the model protocol. Source: docs/reference/qwen2_5_vl.md, "Encoder graphs".
#include "models/qwen2_5_vl/model.h"

#include <array>
#include <memory>
#include <span>
#include <string_view>
#include <utility>

#include "core/check.h"
#include "models/common/grid/model.h"
#include "models/common/grid/processor_file.h"
#include "models/qwen2_5_vl/config.h"
#include "models/qwen2_5_vl/windows.h"

namespace fovea::qwen2_5_vl {

namespace {

constexpr std::array kArchitectures = std::to_array<std::string_view>(
    {"Qwen2_5_VLForConditionalGeneration", "Exaone4_5_ForConditionalGeneration",
     "Qwen2_5OmniForConditionalGeneration", "Qwen2_5OmniModel",
     "Qwen2_5OmniThinkerForConditionalGeneration", "OpenCUAForConditionalGeneration"});
constexpr Prunable kPrunable{.evs = std::span(kArchitectures).first<2>()};

/// As in GraphSpec. Only some blocks attend to all rows of a frame, and a gated MLP has three GEMMs
/// of its width where others have two.
std::int64_t attention_parity_rows(const Config& c) {
  if (c.num_full() == 0) return 0;
  return common::attention_parity(c.hidden_size, 3 * c.intermediate_size / 2) * c.depth /
         c.num_full();
}

common::GridTower describe(const Config& c) {
  return {.main_width = c.out_hidden_size,
          .out_width = c.out_hidden_size,
          .attention_parity_rows = attention_parity_rows(c),
          .facts = {{"depth", cat(c.depth)},
                    {"blocks with full attention", cat(c.num_full())},
                    {"hidden_size", cat(c.hidden_size)},
                    {"intermediate_size", cat(c.intermediate_size)},
                    {"num_heads", cat(c.num_heads)},
                    {"num_key_value_heads", cat(c.num_key_value_heads)},
                    {"window_size", cat(c.window_size)}}};
}

std::unique_ptr<EncoderGraphModel> make(const checkpoint::HfConfig& files,
                                        const MediaOptions& media, common::WeightLoader& loader) {
  const Config config = parse_config(files);
  common::GridProcessing processing = common::read_frame_processing(files, config.grid, media);
  Weights weights = load_weights(loader, config, processing.scaling.table());
  return std::make_unique<common::PlainGridModel<Config, Weights, WindowInputs>>(
      describe(config), std::move(processing), config, std::move(weights), &forward);
}

}  // namespace

const ModelFamily& family() noexcept {
  static constexpr ModelFamily kFamily{
      .name = "qwen2_5_vl",
      .architectures = kArchitectures,
      .anchor_folder = "visual.",
      .anchor_tensor = "patch_embed.proj.weight",
      .make = &make,
      .has_pixel_range = true,
      .item_options = {.image = common::kPixelOptions, .video = common::kFrameVideoOptions},
      .other_folder = "vision_tower.",
      .prunable = kPrunable};
  return kFamily;
}

}  // namespace fovea::qwen2_5_vl
