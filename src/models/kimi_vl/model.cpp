// Kimi-VL and Kimi-K2.5 behind the model protocol. Source: docs/reference/kimi_vl.md, "Encoder
// graphs".
#include "models/kimi_vl/model.h"

#include <array>
#include <memory>
#include <utility>
#include <vector>

#include "core/check.h"
#include "models/common/grid/model.h"
#include "models/kimi_vl/config.h"
#include "models/kimi_vl/processor.h"

namespace fovea::kimi_vl {

namespace {

constexpr std::array<std::string_view, 1> kArchitectures{"KimiVLForConditionalGeneration"};
constexpr std::array<std::string_view, 1> kK25Architectures{"KimiK25ForConditionalGeneration"};
constexpr std::string_view kAnchor = "vision_tower.patch_embed.proj.weight";

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

class Model final : public common::GridModel {
 public:
  Model(const Config& config, Processing processing, Weights weights)
      : GridModel(describe(config), std::make_unique<Processor>(std::move(processing))),
        config_(config),
        weights_(std::move(weights)) {}

  [[nodiscard]] std::vector<BufferDecl> inputs(PathId,
                                               const GraphCapacity& capacity) const override {
    std::vector<BufferDecl> decls = common::GridInputs::declare(config_.grid, capacity);
    if (!has_chunks()) return decls;
    for (BufferDecl& decl : ChunkInputs::declare(config_.grid, capacity)) {
      decls.push_back(std::move(decl));
    }
    return decls;
  }
  void fill_inputs(PathId, const GraphCapacity&, std::span<const ItemPart> parts,
                   InputWriter& writer) const override {
    const std::vector<common::GridRun> runs = common::runs_of(config_.grid, parts);
    common::GridInputs::fill(config_.grid, runs, writer);
    if (has_chunks()) ChunkInputs::fill(weights_.times.shape[0], runs, writer);
  }
  void forward(ExecContext& ctx, PathId, const GraphCapacity&, const NamedTensors& in,
               TensorView out) const override {
    const auto chunks = has_chunks() ? std::optional(ChunkInputs::of(in)) : std::nullopt;
    kimi_vl::forward(ctx, config_, weights_, common::GridInputs::of(in), chunks, out);
  }

 private:
  [[nodiscard]] bool has_chunks() const { return config_.init_pos_emb_time > 0; }

  Config config_;
  Weights weights_;
};

std::unique_ptr<EncoderGraphModel> make(const checkpoint::HfConfig& files,
                                        const MediaOptions& media, common::WeightLoader& loader) {
  const Config config = parse_config(files);
  Processing processing = read_processing(files, config.grid, media);
  const common::PixelScaling& scaling = processing.grid.scaling;
  Weights weights = load_weights(
      loader, config, media::to_tensor_normalize_table(scaling.image_mean, scaling.image_std));
  return std::make_unique<Model>(config, std::move(processing), std::move(weights));
}

std::unique_ptr<EncoderGraphModel> make_k25(const checkpoint::HfConfig& files,
                                            const MediaOptions& media,
                                            common::WeightLoader& loader) {
  const Config config = parse_k25_config(files);
  Processing processing = read_k25_processing(files, config.grid, media);
  Weights weights = load_weights(loader, config, processing.grid.scaling.table());
  return std::make_unique<Model>(config, std::move(processing), std::move(weights));
}

}  // namespace

const ModelFamily& family() noexcept {
  static constexpr ModelFamily kFamily{.name = "kimi_vl",
                                       .architectures = kArchitectures,
                                       .anchor_folder = "",
                                       .anchor_tensor = kAnchor,
                                       .make = &make};
  return kFamily;
}

const ModelFamily& k25_family() noexcept {
  static constexpr ModelFamily kFamily{.name = "kimi_vl",
                                       .architectures = kK25Architectures,
                                       .anchor_folder = "",
                                       .anchor_tensor = kAnchor,
                                       .make = &make_k25};
  return kFamily;
}

}  // namespace fovea::kimi_vl
