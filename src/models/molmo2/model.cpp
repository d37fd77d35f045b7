// Molmo2 behind the model protocol. Source: docs/reference/molmo2.md, "Encoder graphs".
#include "models/molmo2/model.h"

#include <array>
#include <memory>
#include <utility>

#include "core/check.h"

namespace fovea::molmo2 {

namespace {

constexpr std::array<std::string_view, 1> kArchitectures{"Molmo2ForConditionalGeneration"};

constexpr std::int64_t kMaxFramesPerVideo = 32;  // longer videos run eagerly

class Model final : public EncoderGraphModel {
 public:
  Model(const Config& config, Processing processing, Weights weights)
      : config_(config),
        layout_(layout_of(config)),
        processor_(std::move(processing)),
        weights_(std::move(weights)) {
    const bool videos = processor_.processing().video_refusal.empty();
    spec_.modalities = {Modality::kImage};
    if (videos) spec_.modalities.push_back(Modality::kVideo);
    spec_.main_width = config.text_hidden_size;
    spec_.out_width = config.text_hidden_size;
    spec_.max_frames_per_video = videos ? kMaxFramesPerVideo : 1;
  }

  [[nodiscard]] const GraphSpec& graph_spec() const noexcept override { return spec_; }
  [[nodiscard]] const ItemProcessor& processor() const noexcept override { return processor_; }
  [[nodiscard]] std::int64_t path_width(PathId) const override { return spec_.out_width; }

  [[nodiscard]] std::vector<std::pair<std::string, std::string>> facts() const override {
    const Config& c = config_;
    const Processing& p = processor_.processing();
    std::string layers;
    for (const std::int64_t layer : c.vit_layers) layers += cat(layers.empty() ? "" : ", ", layer);
    return {{"num_hidden_layers", cat(c.num_hidden_layers)},
            {"hidden_size", cat(c.hidden_size)},
            {"intermediate_size", cat(c.intermediate_size)},
            {"num_attention_heads", cat(c.num_attention_heads)},
            {"vit_layers", layers},
            {"crops", cat("up to ", p.max_crops, " of ", c.view.side_px, "x", c.view.side_px,
                          ", and the whole image")}};
  }

  [[nodiscard]] std::vector<BufferDecl> inputs(PathId,
                                               const GraphCapacity& capacity) const override {
    return Inputs::declare(layout_, processor_.processing(), processor_.most_views(capacity.tokens),
                           capacity.tokens);
  }

  void fill_inputs(PathId, const GraphCapacity& capacity, std::span<const ItemPart> parts,
                   InputWriter& writer) const override {
    Inputs::fill(layout_, processor_.most_views(capacity.tokens), processor_, parts, writer);
  }

  void forward(ExecContext& ctx, PathId, const GraphCapacity& capacity, const NamedTensors& in,
               TensorView out) const override {
    molmo2::forward(
        ctx, config_, weights_,
        Inputs::of(layout_, processor_.processing(), processor_.most_views(capacity.tokens), in),
        out);
  }

 private:
  Config config_;
  common::ViewLayout layout_;
  Processor processor_;
  Weights weights_;
  GraphSpec spec_;
};

std::unique_ptr<EncoderGraphModel> make(const checkpoint::HfConfig& files, const MediaOptions&,
                                        common::WeightLoader& loader) {
  const Config config = parse_config(files);
  Processing processing = read_processing(files, config);
  Weights weights = load_weights(loader, config, processing.scaling.table());
  return std::make_unique<Model>(config, std::move(processing), std::move(weights));
}

}  // namespace

const ModelFamily& family() noexcept {
  static constexpr ModelFamily kFamily{
      .name = "molmo2",
      .architectures = kArchitectures,
      .anchor_folder = "",
      .anchor_tensor = "vision_backbone.image_vit.patch_embedding.weight",
      .make = &make,
      .bfloat16_tolerance = 0.075};
  return kFamily;
}

}  // namespace fovea::molmo2
