// Phi-4-multimodal behind the model protocol. Source: docs/reference/phi4_multimodal.md, "Encoder
// graphs".
#include "models/phi4_multimodal/model.h"

#include <array>
#include <memory>
#include <utility>

#include "core/check.h"

namespace fovea::phi4_multimodal {

namespace {

/// The name of transformers, and the vendor's.
constexpr std::array<std::string_view, 2> kArchitectures{"Phi4MultimodalForCausalLM",
                                                         "Phi4MMForCausalLM"};

class Model final : public EncoderGraphModel {
 public:
  Model(const Config& config, Processing processing, Weights weights)
      : config_(config), processor_(std::move(processing)), weights_(std::move(weights)) {
    spec_.modalities = {Modality::kImage};
    spec_.main_width = config.text_hidden_size;
    spec_.out_width = config.text_hidden_size;
    const std::int64_t side = config.tokens_side();
    spec_.min_token_budget = side * (side + 1) + 1;  // of the global view
  }

  [[nodiscard]] const GraphSpec& graph_spec() const noexcept override { return spec_; }
  [[nodiscard]] const ItemProcessor& processor() const noexcept override { return processor_; }
  [[nodiscard]] std::int64_t path_width(PathId) const override { return spec_.out_width; }

  [[nodiscard]] std::vector<std::pair<std::string, std::string>> facts() const override {
    auto facts = common::siglip_facts(config_.tower);
    const std::int64_t side = config_.tower.view.side_px;
    facts.emplace_back("views", cat("up to ", processor_.processing().dynamic_hd, " of ", side, "x",
                                    side, ", and a global one"));
    return facts;
  }

  [[nodiscard]] std::vector<BufferDecl> inputs(PathId,
                                               const GraphCapacity& capacity) const override {
    return Inputs::declare(config_.tower.view, capacity.tokens);
  }

  void fill_inputs(PathId, const GraphCapacity&, std::span<const ItemPart> parts,
                   InputWriter& writer) const override {
    Inputs::fill(processor_.processing(), parts, writer);
  }

  void forward(ExecContext& ctx, PathId, const GraphCapacity&, const NamedTensors& in,
               TensorView out) const override {
    phi4_multimodal::forward(ctx, config_, weights_, Inputs::of(in), out);
  }

 private:
  Config config_;
  Processor processor_;
  Weights weights_;
  GraphSpec spec_;
};

std::unique_ptr<EncoderGraphModel> make(const checkpoint::HfConfig& files,
                                        const MediaOptions& media, common::WeightLoader& loader) {
  const Config config = parse_config(files);
  Processing processing = read_processing(files, config, media);
  Weights weights = load_weights(loader, config, processing.scaling);
  return std::make_unique<Model>(config, std::move(processing), std::move(weights));
}

}  // namespace

const ModelFamily& family() noexcept {
  static constexpr ModelFamily kFamily{
      .name = "phi4_multimodal",
      .architectures = kArchitectures,
      .anchor_folder = "",
      .anchor_tensor =
          "embed_tokens_extend.image_embed.img_processor.embeddings.patch_embedding.weight",
      .make = &make};
  return kFamily;
}

}  // namespace fovea::phi4_multimodal
