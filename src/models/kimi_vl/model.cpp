// Kimi-VL behind the model protocol. Source: docs/reference/kimi_vl.md, "Encoder graphs".
#include "models/kimi_vl/model.h"

#include <array>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>

#include "models/common/grid/model.h"

namespace fovea::kimi_vl {

namespace {

constexpr auto kImageOptions = std::to_array<std::string_view>({"in_token_limit"});

constexpr std::array<std::string_view, 1> kArchitectures{"KimiVLForConditionalGeneration"};

void forward(ExecContext& ctx, const Config& config, const Weights& weights,
             const common::GridInputs& in, TensorView out) {
  common::run_moonvit(ctx, config, weights, in, std::nullopt, out);
}

std::unique_ptr<EncoderGraphModel> make(const checkpoint::HfConfig& files,
                                        const MediaOptions& media, common::WeightLoader& loader) {
  const Config config = parse_config(files);
  common::GridProcessing processing = read_processing(files, config.grid, media);
  const common::PixelScaling& scaling = processing.scaling;
  Weights weights = load_weights(
      loader, config, media::to_tensor_normalize_table(scaling.image_mean, scaling.image_std));
  return std::make_unique<common::PlainGridModel<Config, Weights>>(
      common::moonvit_tower(config), std::move(processing), config, std::move(weights), &forward);
}

}  // namespace

Weights load_weights(common::WeightLoader& loader, const Config& config,
                     const media::NormalizeTable& normalize) {
  const common::ProjectorNames names{.pre_norm = "multi_modal_projector.pre_norm",
                                     .fc1 = "multi_modal_projector.linear_1",
                                     .fc2 = "multi_modal_projector.linear_2"};
  return common::load_moonvit(loader, config, names, normalize);
}

const ModelFamily& family() noexcept {
  static constexpr ModelFamily kFamily{.name = "kimi_vl",
                                       .architectures = kArchitectures,
                                       .anchor_folder = "",
                                       .anchor_tensor = "vision_tower.patch_embed.proj.weight",
                                       .make = &make,
                                       .item_options = {.image = kImageOptions}};
  return kFamily;
}

}  // namespace fovea::kimi_vl
