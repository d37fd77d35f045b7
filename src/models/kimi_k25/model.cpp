// Kimi-K2.5 behind the model protocol. Source: docs/reference/kimi_vl.md, "Kimi-K2.5".
#include "models/kimi_k25/model.h"

#include <array>
#include <memory>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "models/common/grid/model.h"

namespace fovea::kimi_k25 {

namespace {

constexpr std::array<std::string_view, 1> kArchitectures{"KimiK25ForConditionalGeneration"};

class Model final : public common::GridModel {
 public:
  Model(const Config& config, common::GridProcessing processing, common::MoonVitWeights weights)
      : GridModel(common::moonvit_tower(config), std::move(processing)),
        config_(config),
        weights_(std::move(weights)) {}

  [[nodiscard]] std::vector<BufferDecl> inputs(PathId,
                                               const GraphCapacity& capacity) const override {
    std::vector<BufferDecl> decls = common::GridInputs::declare(config_.grid, capacity);
    for (BufferDecl& decl : common::ChunkInputs::declare(config_.grid, capacity)) {
      decls.push_back(std::move(decl));
    }
    return decls;
  }
  void fill_inputs(PathId, const GraphCapacity&, std::span<const ItemPart> parts,
                   InputWriter& writer) const override {
    const std::vector<common::GridRun> runs = common::runs_of(config_.grid, parts);
    common::GridInputs::fill(config_.grid, runs, writer);
    common::ChunkInputs::fill(weights_.times.shape[0], runs, writer);
  }
  void forward(ExecContext& ctx, PathId, const GraphCapacity&, const NamedTensors& in,
               TensorView out) const override {
    common::run_moonvit(ctx, config_, weights_, common::GridInputs::of(in),
                        common::ChunkInputs::of(in), out);
  }

 private:
  Config config_;
  common::MoonVitWeights weights_;
};

std::unique_ptr<EncoderGraphModel> make(const checkpoint::HfConfig& files,
                                        const MediaOptions& media, common::WeightLoader& loader) {
  const Config config = parse_config(files);
  common::GridProcessing processing = read_processing(files, config.grid, media);
  common::MoonVitWeights weights = load_weights(loader, config, processing.scaling.table());
  return std::make_unique<Model>(config, std::move(processing), std::move(weights));
}

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
                                       .make = &make};
  return kFamily;
}

}  // namespace fovea::kimi_k25
