// LFM2-VL behind the model protocol: one path whose items are one view or several. Source:
// docs/reference/lfm2_vl.md, "Encoder graphs".
#include "models/lfm2_vl/model.h"

#include <algorithm>
#include <array>
#include <memory>
#include <utility>
#include <vector>

#include "core/check.h"
#include "models/common/grid/model.h"
#include "models/lfm2_vl/processor.h"

namespace fovea::lfm2_vl {

namespace {

constexpr std::array<std::string_view, 1> kArchitectures{"Lfm2VlForConditionalGeneration"};

common::GridTower describe(const Config& c, const Processing& p) {
  return {.main_width = c.text_hidden_size,
          .out_width = c.text_hidden_size,
          .facts = {{"num_hidden_layers", cat(c.num_hidden_layers)},
                    {"hidden_size", cat(c.hidden_size)},
                    {"intermediate_size", cat(c.intermediate_size)},
                    {"num_attention_heads", cat(c.num_attention_heads)},
                    {"tiles", cat(p.min_tiles, "..", p.max_tiles, " of ", p.tile_size, "x",
                                  p.tile_size, p.use_thumbnail ? " and a thumbnail" : "")}}};
}

class Model final : public common::GridModel {
 public:
  Model(const Config& config, std::unique_ptr<const Processor> processor, common::GridTower tower,
        Weights weights)
      : GridModel(std::move(tower), std::move(processor)),
        views_(static_cast<const Processor&>(this->processor())),
        config_(config),
        weights_(std::move(weights)) {}

  [[nodiscard]] std::vector<BufferDecl> inputs(PathId,
                                               const GraphCapacity& capacity) const override {
    const std::int64_t most_views = capacity.tokens / views_.least_view_tokens();
    return common::GridInputs::declare(config_.grid,
                                       {.tokens = capacity.tokens,
                                        .items = capacity.items,
                                        .seqs = std::max<std::int64_t>(1, most_views)});
  }

  void fill_inputs(PathId, const GraphCapacity&, std::span<const ItemPart> parts,
                   InputWriter& writer) const override {
    const common::ViewRuns views(parts,
                                 [this](const ItemPlan& plan) { return views_.views_of(plan); });
    common::GridInputs::fill(config_.grid, views.runs(), writer);
  }

  void forward(ExecContext& ctx, PathId, const GraphCapacity&, const NamedTensors& in,
               TensorView out) const override {
    lfm2_vl::forward(ctx, config_, weights_, common::GridInputs::of(in), out);
  }

 private:
  const Processor& views_;  // that of GridModel
  Config config_;
  Weights weights_;
};

std::unique_ptr<EncoderGraphModel> make(const checkpoint::HfConfig& files,
                                        const MediaOptions& media, common::WeightLoader& loader) {
  const Config config = parse_config(files);
  Processing processing = read_processing(files, config.grid, media);
  Weights weights = load_weights(loader, config, processing.grid.scaling.table());
  common::GridTower tower = describe(config, processing);
  return std::make_unique<Model>(config, std::make_unique<Processor>(std::move(processing)),
                                 std::move(tower), std::move(weights));
}

}  // namespace

const ModelFamily& family() noexcept {
  static constexpr ModelFamily kFamily{
      .name = "lfm2_vl",
      .architectures = kArchitectures,
      .anchor_folder = "",
      .anchor_tensor = "vision_tower.vision_model.embeddings.patch_embedding.weight",
      .make = &make};
  return kFamily;
}

}  // namespace fovea::lfm2_vl
