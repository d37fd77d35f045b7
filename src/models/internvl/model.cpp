// InternVL behind the model protocol: one path whose unit is a view, be it a tile, a thumbnail or a
// frame. Source: docs/reference/internvl.md, "Encoder graphs".
#include "models/internvl/model.h"

#include <array>
#include <memory>
#include <utility>

#include "core/check.h"
#include "models/internvl/config.h"
#include "models/internvl/forward.h"
#include "models/internvl/processor.h"
#include "models/internvl/weights.h"

namespace fovea::internvl {

namespace {

using Items = std::span<const PreparedItem* const>;

class Model final : public EncoderGraphModel {
 public:
  Model(const Config& config, Processing processing, Weights weights)
      : config_(config),
        processor_(std::move(processing)),
        weights_(std::move(weights)),
        layout_(layout_of(config)) {
    const std::int64_t unit = config_.tokens_per_view();
    spec_.modalities = {Modality::kImage, Modality::kVideo};
    spec_.main_width = config_.llm_hidden_size;
    spec_.out_width = config_.llm_hidden_size;
    spec_.min_token_budget = unit;
    spec_.paths = {{.min_token_budget = unit, .unit = unit}};
  }

  [[nodiscard]] const GraphSpec& graph_spec() const noexcept override { return spec_; }
  [[nodiscard]] const ItemProcessor& processor() const noexcept override { return processor_; }
  [[nodiscard]] std::vector<std::pair<std::string, std::string>> facts() const override;
  [[nodiscard]] std::int64_t path_width(PathId) const override { return spec_.out_width; }

  [[nodiscard]] std::vector<BufferDecl> inputs(PathId,
                                               const GraphCapacity& capacity) const override {
    return blocks::ViewInputs::declare(layout_, views_of(capacity.tokens));
  }

  void fill_inputs(PathId, const GraphCapacity& capacity, Items items,
                   InputWriter& writer) const override {
    std::int64_t tokens = 0;
    for (const PreparedItem* item : items) tokens += item->plan.spec.out_rows;
    std::byte* to = blocks::ViewInputs::fill(layout_, views_of(capacity.tokens), views_of(tokens),
                                             items.size(), writer);
    for (const PreparedItem* item : items) {
      writer.copy(to, item->pixels);
      to += item->pixels.size();
    }
  }

  void forward(ExecContext& ctx, PathId, const GraphCapacity& capacity, const NamedTensors& in,
               TensorView out) const override {
    internvl::forward(ctx, config_, weights_,
                      blocks::ViewInputs::of(layout_, views_of(capacity.tokens), in), out);
  }

 private:
  [[nodiscard]] std::int64_t views_of(std::int64_t tokens) const {
    return tokens / config_.tokens_per_view();
  }

  Config config_;
  Processor processor_;
  Weights weights_;
  blocks::ViewLayout layout_;
  GraphSpec spec_;
};

std::vector<std::pair<std::string, std::string>> Model::facts() const {
  const Config& c = config_;
  const Processing& p = processor_.processing();
  return {
      {"depth", cat(c.num_hidden_layers)},
      {"width", cat(c.hidden_size)},
      {"MLP width", cat(c.intermediate_size)},
      {"heads", cat(c.num_attention_heads)},
      {"norm", cat(c.rms_norm ? "RMS" : "layer", c.qk_normalization ? ", q and k" : "")},
      {"view", cat(c.image_size, "x", c.image_size, ", ", c.tokens_per_view(), " tokens")},
      {"tiles", cat(p.min_tiles, "..", p.max_tiles, p.use_thumbnail ? " and a thumbnail" : "")}};
}

template <Format kFormat>
std::unique_ptr<EncoderGraphModel> make(const checkpoint::HfConfig& files,
                                        const MediaOptions& media, blocks::WeightLoader& loader) {
  const Config config = parse_config(files, kFormat);
  Processing processing = read_processing(files, config, media);
  Weights weights = load_weights(loader, config, processing.normalize);
  return std::make_unique<Model>(config, std::move(processing), std::move(weights));
}

constexpr std::array<std::string_view, 1> kChat{"InternVLChatModel"};
constexpr std::array<std::string_view, 1> kNative{"InternVLForConditionalGeneration"};

}  // namespace

const ModelFamily& chat_family() noexcept {
  static constexpr ModelFamily kFamily{.name = "internvl",
                                       .architectures = kChat,
                                       .anchor_folder = "",
                                       .anchor_tensor = "vision_model.embeddings.class_embedding",
                                       .make = &make<Format::kChat>};
  return kFamily;
}

const ModelFamily& native_family() noexcept {
  static constexpr ModelFamily kFamily{.name = "internvl",
                                       .architectures = kNative,
                                       .anchor_folder = "",
                                       .anchor_tensor = "vision_tower.embeddings.cls_token",
                                       .make = &make<Format::kNative>};
  return kFamily;
}

}  // namespace fovea::internvl
