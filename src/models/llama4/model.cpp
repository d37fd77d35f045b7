// Llama 4 behind the model protocol. Source: docs/reference/llama4.md, "Encoder graphs".
#include "models/llama4/model.h"

#include <array>
#include <memory>
#include <utility>

#include "core/check.h"
#include "models/llama4/config.h"
#include "models/llama4/forward.h"
#include "models/llama4/processor.h"
#include "models/llama4/weights.h"

namespace fovea::llama4 {

namespace {

constexpr std::array<std::string_view, 1> kArchitectures{"Llama4ForConditionalGeneration"};

class Model final : public EncoderGraphModel {
 public:
  Model(const Config& config, Processing processing, Weights weights)
      : config_(config), processor_(std::move(processing)), weights_(std::move(weights)) {
    const std::int64_t tokens = config_.tokens();
    spec_.modalities = {Modality::kImage};
    spec_.main_width = config_.text_hidden_size;
    spec_.out_width = config_.text_hidden_size;
    spec_.min_token_budget = tokens;
    spec_.paths = {{.unit = tokens, .max_item_tokens = most_tiles() * tokens}};
  }

  [[nodiscard]] const GraphSpec& graph_spec() const noexcept override { return spec_; }
  [[nodiscard]] const ItemProcessor& processor() const noexcept override { return processor_; }
  [[nodiscard]] std::vector<std::pair<std::string, std::string>> facts() const override;
  [[nodiscard]] std::int64_t path_width(PathId) const override { return spec_.out_width; }

  [[nodiscard]] std::vector<BufferDecl> inputs(PathId,
                                               const GraphCapacity& capacity) const override {
    return Inputs::declare(config_, tiles_of(capacity.tokens));
  }

  void fill_inputs(PathId, const GraphCapacity& capacity,
                   std::span<const PreparedItem* const> items, InputWriter& writer) const override {
    std::int64_t tokens = 0;
    for (const PreparedItem* item : items) tokens += item->plan.spec.out_rows;
    std::byte* to =
        Inputs::fill(config_, tiles_of(capacity.tokens), tiles_of(tokens), items.size(), writer);
    for (const PreparedItem* item : items) {
      writer.copy(to, item->pixels);
      to += item->pixels.size();
    }
  }

  void forward(ExecContext& ctx, PathId, const GraphCapacity& capacity, const NamedTensors& in,
               TensorView out) const override {
    llama4::forward(ctx, config_, weights_, Inputs::of(config_, tiles_of(capacity.tokens), in),
                    out);
  }

 private:
  [[nodiscard]] std::int64_t tiles_of(std::int64_t tokens) const {
    return tokens / config_.tokens();
  }
  /// Of an image: those of the largest canvas and the whole image.
  [[nodiscard]] std::int64_t most_tiles() const { return processor_.processing().max_patches + 1; }

  Config config_;
  Processor processor_;
  Weights weights_;
  GraphSpec spec_;
};

std::vector<std::pair<std::string, std::string>> Model::facts() const {
  const Config& c = config_;
  return {{"num_hidden_layers", cat(c.num_hidden_layers)},
          {"hidden_size", cat(c.hidden_size)},
          {"intermediate_size", cat(c.intermediate_size)},
          {"num_attention_heads", cat(c.num_attention_heads)},
          {"tiles", cat("up to ", most_tiles(), " of ", c.view.side_px, "x", c.view.side_px)}};
}

std::unique_ptr<EncoderGraphModel> make(const checkpoint::HfConfig& files,
                                        const MediaOptions& media, blocks::WeightLoader& loader) {
  const Config config = parse_config(files);
  Processing processing = read_processing(files, config, media);
  Weights weights = load_weights(loader, config, processing.table());
  return std::make_unique<Model>(config, std::move(processing), std::move(weights));
}

}  // namespace

const ModelFamily& family() noexcept {
  static constexpr ModelFamily kFamily{
      .name = "llama4",
      .architectures = kArchitectures,
      .anchor_folder = "",
      .anchor_tensor = "vision_model.patch_embedding.linear.weight",
      .make = &make};
  return kFamily;
}

}  // namespace fovea::llama4
