// Kimi-K2.5 behind the model protocol. Source: docs/reference/kimi_vl.md, "Kimi-K2.5".
#include "models/kimi_k25/model.h"

#include <array>
#include <memory>
#include <string_view>
#include <utility>

#include "models/common/grid/model.h"

namespace fovea::kimi_k25 {

namespace {

constexpr std::array<std::string_view, 1> kArchitectures{"KimiK25ForConditionalGeneration"};

void forward(ExecContext& ctx, const Config& config, const common::MoonVitWeights& weights,
             const common::GridInputs& in, const common::ChunkInputs& chunks, TensorView out) {
  common::run_moonvit(ctx, config, weights, in, chunks, out);
}

using Model = common::PlainGridModel<Config, common::MoonVitWeights, common::ChunkInputs>;

std::unique_ptr<EncoderGraphModel> make(const checkpoint::HfConfig& files,
                                        const MediaOptions& media, common::WeightLoader& loader) {
  const Config config = parse_config(files);
  common::GridProcessing processing = read_processing(files, config.grid, media);
  common::MoonVitWeights weights = load_weights(loader, config, processing.scaling.table());
  return std::make_unique<Model>(common::moonvit_tower(config), std::move(processing), config,
                                 std::move(weights), &forward);
}

/// As save_pretrained() of transformers 5.24 writes them, whether published ones were loaded or
/// not.
constexpr std::array<common::RenamedPart, 2> kSaved{{
    {"vision_tower.patch_embed.proj", "vision_tower.encoder.patch_embed.proj"},
    {"mm_projector.pre_norm", "model.mm_projector.pre_norm"},
}};
constexpr std::array<common::OtherNames, 1> kOtherNames{{
    {"", "vision_tower.encoder.patch_embed.proj.weight", kSaved},
}};

}  // namespace

common::MoonVitWeights load_weights(common::WeightLoader& loader, const Config& config,
                                    const media::NormalizeTable& normalize) {
  const common::ProjectorNames names{.pre_norm = "mm_projector.pre_norm",
                                     .fc1 = "mm_projector.proj.0",
                                     .fc2 = "mm_projector.proj.2"};
  return common::load_moonvit(loader, config, names, normalize);
}

const ModelFamily& family() noexcept {
  static constexpr ModelFamily kFamily{.name = "kimi_k25",
                                       .architectures = kArchitectures,
                                       .anchor_folder = "",
                                       .anchor_tensor = "vision_tower.patch_embed.proj.weight",
                                       .make = &make,
                                       .other_names = kOtherNames};
  return kFamily;
}

}  // namespace fovea::kimi_k25
