// Qwen3-VL behind the model protocol. Source: docs/reference/qwen_glm.md, "Encoder graphs".
#include "models/qwen3_vl/model.h"

#include <array>
#include <memory>
#include <utility>

#include "core/check.h"
#include "models/blocks/grid_inputs.h"
#include "models/blocks/grid_processor.h"
#include "models/qwen3_vl/config.h"
#include "models/qwen3_vl/forward.h"
#include "models/qwen3_vl/processing.h"
#include "models/qwen3_vl/weights.h"

namespace fovea::qwen3_vl {

namespace {

constexpr std::array<std::string_view, 4> kArchitectures{
    "Qwen3VLForConditionalGeneration", "Qwen3VLMoeForConditionalGeneration",
    "Qwen3_5ForConditionalGeneration", "Qwen3_5MoeForConditionalGeneration"};

class Model final : public EncoderGraphModel {
 public:
  Model(Config config, blocks::GridProcessing processing, Weights weights)
      : config_(std::move(config)),
        processor_(std::move(processing)),
        weights_(std::move(weights)) {
    spec_.modalities = {Modality::kImage, Modality::kVideo};
    spec_.main_width = config_.out_hidden_size;
    spec_.out_width = config_.out_width();
    spec_.max_frames_per_video = 32;  // longer videos run eagerly
    // Per row a block multiplies 4 h^2 + 2 h i times in its GEMMs and, per key, 2 h times in its
    // attention.
    spec_.attention_parity_rows = 2 * config_.hidden_size + config_.intermediate_size;
  }

  [[nodiscard]] const GraphSpec& graph_spec() const noexcept override { return spec_; }
  [[nodiscard]] const ItemProcessor& processor() const noexcept override { return processor_; }
  [[nodiscard]] std::vector<std::pair<std::string, std::string>> facts() const override;
  [[nodiscard]] std::int64_t path_width(PathId) const override { return config_.out_width(); }

  [[nodiscard]] std::vector<BufferDecl> inputs(PathId,
                                               const GraphCapacity& capacity) const override {
    return blocks::GridInputs::declare(config_.grid, capacity);
  }

  void fill_inputs(PathId, const GraphCapacity&, std::span<const PreparedItem* const> items,
                   InputWriter& writer) const override {
    blocks::GridInputs::fill(config_.grid, items, writer);
  }

  void forward(ExecContext& ctx, PathId, const GraphCapacity&, const NamedTensors& in,
               TensorView out) const override {
    qwen3_vl::forward(ctx, config_, weights_, blocks::GridInputs::of(in), out);
  }

 private:
  Config config_;
  blocks::GridProcessor processor_;
  Weights weights_;
  GraphSpec spec_;
};

std::vector<std::pair<std::string, std::string>> Model::facts() const {
  const Config& c = config_;
  const blocks::GridLimits& limits = processor_.processing().limits;
  return {{"depth", cat(c.depth)},
          {"hidden_size", cat(c.hidden_size)},
          {"intermediate_size", cat(c.intermediate_size)},
          {"num_heads", cat(c.num_heads)},
          {"patch_size", cat(c.grid.patch_size)},
          {"spatial_merge_size", cat(c.grid.spatial_merge_size)},
          {"temporal_patch_size", cat(c.grid.temporal_patch_size)},
          {"num_position_embeddings", cat(c.num_position_embeddings)},
          {"image pixels", cat(limits.image.min_pixels, "..", limits.image.max_pixels)},
          {"video pixels", cat(limits.video.min_pixels, "..", limits.video.max_pixels)}};
}

std::unique_ptr<EncoderGraphModel> make(const checkpoint::HfConfig& files,
                                        const MediaOptions& media, blocks::WeightLoader& loader) {
  const Config config = parse_config(files);
  blocks::GridProcessing processing = read_processing(files, config.grid, media);
  Weights weights = load_weights(loader, config, processing.scaling.table());
  return std::make_unique<Model>(config, std::move(processing), std::move(weights));
}

}  // namespace

const ModelFamily& family() noexcept {
  static constexpr ModelFamily kFamily{.name = "qwen3_vl",
                                       .architectures = kArchitectures,
                                       .anchor_folder = "visual.",
                                       .anchor_tensor = "patch_embed.proj.weight",
                                       .make = &make};
  return kFamily;
}

}  // namespace fovea::qwen3_vl
