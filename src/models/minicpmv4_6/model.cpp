// MiniCPM-V 4.6 behind the model protocol: one path whose items are views of two sizes. Source:
// docs/reference/minicpmv4_6.md, "Encoder graphs".
#include "models/minicpmv4_6/model.h"

#include <algorithm>
#include <array>
#include <memory>
#include <utility>
#include <vector>

#include "core/check.h"
#include "models/common/grid/model.h"
#include "models/minicpmv4_6/processor.h"

namespace fovea::minicpmv4_6 {

namespace {

constexpr std::array<std::string_view, 1> kArchitectures{"MiniCPMV4_6ForConditionalGeneration"};

common::GridTower describe(const Config& c, const Processing& p) {
  common::GridTower tower{.main_width = c.text_hidden_size,
                          .out_width = c.text_hidden_size,
                          .facts = common::siglip_facts(c.tower)};
  tower.facts.back() = {"position table", cat(c.tower.view.grid(), "x", c.tower.view.grid())};
  tower.facts.emplace_back("insert_layer_id", cat(c.insert_layer_id));
  tower.facts.emplace_back("slices", cat("up to ", p.image.max_slice_nums, " of the area of ",
                                         p.image.scale_resolution, "x", p.image.scale_resolution));
  return tower;
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
    const std::int64_t views =
        std::max<std::int64_t>(1, capacity.tokens / views_.least_view_tokens());
    std::vector<BufferDecl> decls = common::GridInputs::declare(
        config_.grid, {.tokens = capacity.tokens, .items = capacity.items, .seqs = views});
    for (BufferDecl& decl : WindowInputs::declare(capacity, views)) {
      decls.push_back(std::move(decl));
    }
    return decls;
  }

  void fill_inputs(PathId, const GraphCapacity&, std::span<const ItemPart> parts,
                   InputWriter& writer) const override {
    const common::ViewRuns views(config_.grid, parts,
                                 [this](const ItemPlan& plan) { return views_.views_of(plan); });
    const common::PatchTables rows = common::GridInputs::fill(config_.grid, views.runs(), writer);
    WindowInputs::fill(config_.tower.view.grid(), views.runs(), rows, writer);
  }

  void forward(ExecContext& ctx, PathId, const GraphCapacity&, const NamedTensors& in,
               TensorView out) const override {
    minicpmv4_6::forward(ctx, config_, weights_, common::GridInputs::of(in), WindowInputs::of(in),
                         out);
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
      .name = "minicpmv4_6",
      .architectures = kArchitectures,
      .anchor_folder = "",
      .anchor_tensor = "vision_tower.embeddings.patch_embedding.weight",
      .make = &make};
  return kFamily;
}

}  // namespace fovea::minicpmv4_6
