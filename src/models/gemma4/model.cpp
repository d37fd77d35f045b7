// Gemma 4 behind the model protocol. Source: docs/reference/gemma4.md, "Encoder graphs".
#include "models/gemma4/model.h"

#include <array>
#include <memory>
#include <string_view>
#include <utility>

#include "core/check.h"
#include "models/common/grid/model.h"

namespace fovea::gemma4 {

namespace {

constexpr auto kImageOptions = std::to_array<std::string_view>({"max_soft_tokens"});

constexpr std::array<std::string_view, 1> kArchitectures{"Gemma4ForConditionalGeneration"};

common::GridTower describe(const Config& c) {
  const std::int64_t mlp_width = 3 * c.intermediate_size / 2;  // three matrices of that width
  return {.main_width = c.text_hidden_size,
          .out_width = c.text_hidden_size,
          .attention_parity_rows = common::attention_parity(c.hidden_size, mlp_width),
          .facts = common::transformer_facts(
              c, {{"head_dim", cat(c.head_dim)},
                  {"use_clipped_linears", c.use_clipped_linears ? "true" : "false"},
                  {"standardize", c.standardize ? "true" : "false"}})};
}

class Model final : public common::GridModel {
 public:
  Model(Config config, common::GridProcessing processing, Weights weights)
      : GridModel(describe(config), std::move(processing)),
        config_(config),
        weights_(std::move(weights)) {}

  void fill_inputs(PathId, const GraphCapacity&, std::span<const ItemPart> parts,
                   InputWriter& writer) const override {
    const common::PatchTables rows = common::GridInputs::fill(config_.grid, parts, writer);
    // A place is looked up in tables of this length, whatever the size of the image.
    for (std::size_t i = 0; i < rows.positions.size(); i += 4) {
      rows.positions[i + 2] = rows.positions[i + 3] =
          static_cast<std::int32_t>(config_.position_embedding_size);
    }
  }
  void forward(ExecContext& ctx, PathId, const GraphCapacity&, const NamedTensors& in,
               TensorView out) const override {
    gemma4::forward(ctx, config_, weights_, common::GridInputs::of(in), out);
  }

 private:
  Config config_;
  Weights weights_;
};

std::unique_ptr<EncoderGraphModel> make(const checkpoint::HfConfig& files,
                                        const MediaOptions& media, common::WeightLoader& loader) {
  const Config config = parse_config(files);
  common::GridProcessing processing = read_processing(files, config, media);
  Weights weights = load_weights(loader, config, processing.scaling.table());
  return std::make_unique<Model>(config, std::move(processing), std::move(weights));
}

}  // namespace

const ModelFamily& family() noexcept {
  static constexpr ModelFamily kFamily{
      .name = "gemma4",
      .architectures = kArchitectures,
      .anchor_folder = "",
      .anchor_tensor = "vision_tower.patch_embedder.input_proj.weight",
      .make = &make,
      .item_options = {.image = kImageOptions},
      .bfloat16_tolerance = 0.125};
  return kFamily;
}

}  // namespace fovea::gemma4
