// Nemotron Omni behind the model protocol. Source: docs/reference/nemotron_h_omni.md, "Encoder
// graphs".
#include "models/nemotron_h_omni/model.h"

#include <algorithm>
#include <array>
#include <memory>
#include <utility>

#include "core/check.h"
#include "models/common/grid/model.h"
#include "models/nemotron_h_omni/processor.h"

namespace fovea::nemotron_h_omni {

namespace {

constexpr std::array<std::string_view, 3> kArchitectures{"NemotronH_Nano_Omni_Reasoning_V3",
                                                         "NemotronH_Super_Omni_Reasoning_V3",
                                                         "NemotronH_Omni_Reasoning_V3"};

common::GridTower describe(const Config& c) {
  return {.main_width = c.text_hidden_size,
          .out_width = c.text_hidden_size,
          .attention_parity_rows = common::attention_parity(c.hidden_size, c.intermediate_size),
          .facts = {{"num_hidden_layers", cat(c.num_hidden_layers)},
                    {"hidden_size", cat(c.hidden_size)},
                    {"intermediate_size", cat(c.intermediate_size)},
                    {"num_attention_heads", cat(c.num_attention_heads)},
                    {"class and register tokens", cat(c.class_rows())}}};
}

class Model final : public common::GridModel {
 public:
  Model(const Config& config, Processing processing, Weights weights)
      : GridModel(describe(config), std::make_unique<Processor>(std::move(processing.grid))),
        config_(config),
        least_tokens_(
            std::max<std::int64_t>(1, processing.least_patches / config.grid.merge_area())),
        weights_(std::move(weights)) {}

  [[nodiscard]] std::vector<BufferDecl> inputs(PathId,
                                               const GraphCapacity& capacity) const override {
    return Inputs::declare(config_, least_tokens_, capacity);
  }

  void fill_inputs(PathId, const GraphCapacity& capacity, std::span<const ItemPart> parts,
                   InputWriter& writer) const override {
    Inputs::fill(config_, capacity, parts, writer);
  }

  void forward(ExecContext& ctx, PathId, const GraphCapacity&, const NamedTensors& in,
               TensorView out) const override {
    nemotron_h_omni::forward(ctx, config_, weights_, Inputs::of(in), out);
  }

 private:
  Config config_;
  std::int64_t least_tokens_;
  Weights weights_;
};

std::unique_ptr<EncoderGraphModel> make(const checkpoint::HfConfig& files,
                                        const MediaOptions& media, common::WeightLoader& loader) {
  const Config config = parse_config(files);
  Processing processing = read_processing(files, config, media);
  Weights weights = load_weights(loader, config, processing.grid.scaling);
  return std::make_unique<Model>(config, std::move(processing), std::move(weights));
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
