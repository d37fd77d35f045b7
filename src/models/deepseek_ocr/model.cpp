// DeepSeek-OCR behind the model protocol: two paths, one for the global view of every image and one
// for the tiles of large ones. Source: docs/reference/deepseek_ocr.md, "Encoder graphs".
#include "models/deepseek_ocr/model.h"

#include <array>
#include <memory>
#include <utility>

#include "core/check.h"
#include "media/normalize.h"
#include "models/deepseek_ocr/assemble.h"
#include "models/deepseek_ocr/config.h"
#include "models/deepseek_ocr/forward.h"
#include "models/deepseek_ocr/processor.h"
#include "models/deepseek_ocr/weights.h"

namespace fovea::deepseek_ocr {

namespace {

constexpr std::array<std::string_view, 1> kArchitectures{"DeepseekOCRForCausalLM"};

using Items = std::span<const PreparedItem* const>;

class Model final : public EncoderGraphModel {
 public:
  Model(Config config, Processing processing, Weights weights)
      : config_(std::move(config)),
        processor_(std::move(processing)),
        weights_(std::move(weights)),
        layouts_{layout_of(views()[kGlobal]), layout_of(views()[kLocal])} {
    const std::int64_t global = tokens_per_view(views(), kGlobal);
    const std::int64_t local = tokens_per_view(views(), kLocal);
    spec_.modalities = {Modality::kImage};
    spec_.main_width = config_.n_embed;
    spec_.out_width = config_.n_embed;
    spec_.min_token_budget = global;
    spec_.max_token_budget = config_.max_position_embeddings;
    spec_.paths = {
        {.name = "global", .min_token_budget = global, .unit = global, .max_item_tokens = global},
        {.name = "local",
         .min_token_budget = local,
         .allow_zero_tokens = true,
         .unit = local,
         .max_item_tokens = processor_.processing().max_tiles * local}};
  }

  [[nodiscard]] const GraphSpec& graph_spec() const noexcept override { return spec_; }
  [[nodiscard]] const ItemProcessor& processor() const noexcept override { return processor_; }
  [[nodiscard]] std::vector<std::pair<std::string, std::string>> facts() const override;
  [[nodiscard]] std::int64_t path_width(PathId) const override { return config_.n_embed; }

  [[nodiscard]] std::vector<BufferDecl> inputs(PathId path,
                                               const GraphCapacity& capacity) const override {
    return blocks::ViewInputs::declare(layout(path), views_of(path, capacity.tokens));
  }

  void fill_inputs(PathId path, const GraphCapacity& capacity, Items items,
                   InputWriter& writer) const override {
    const std::size_t global_bytes = views()[kGlobal].pixel_bytes();
    const auto pixels_of = [&](const PreparedItem& item) {
      const std::span<const std::uint8_t> pixels(item.pixels);
      return path == kGlobal ? pixels.first(global_bytes) : pixels.subspan(global_bytes);
    };
    std::int64_t tokens = 0;
    for (const PreparedItem* item : items) tokens += item->plan.spec.path_tokens[index(path)];
    std::byte* to = blocks::ViewInputs::fill(layout(path), views_of(path, capacity.tokens),
                                             views_of(path, tokens), items.size(), writer);
    for (const PreparedItem* item : items) {
      writer.copy(to, pixels_of(*item));
      to += pixels_of(*item).size();
    }
  }

  void forward(ExecContext& ctx, PathId path, const GraphCapacity& capacity, const NamedTensors& in,
               TensorView out) const override {
    deepseek_ocr::forward(ctx, {config_, weights_, views()[index(path)], static_cast<Path>(path)},
                          blocks::ViewInputs::of(layout(path), views_of(path, capacity.tokens), in),
                          out);
  }

  void assemble(ExecContext& ctx, std::span<const PathOutput> outputs, Items items,
                std::span<const TensorView> out) const override {
    PathRows paths{.global = outputs[kGlobal].rows, .local = outputs[kLocal].rows};
    for (std::size_t i = 0; i < items.size(); ++i) {
      assemble_item(ctx, weights_, views(), tiling_of(items[i]->plan), paths, out[i]);
    }
  }

 private:
  static std::size_t index(PathId path) { return static_cast<std::size_t>(path); }
  [[nodiscard]] const Views& views() const { return processor_.processing().views; }
  [[nodiscard]] const blocks::ViewLayout& layout(PathId path) const {
    return layouts_[index(path)];
  }
  [[nodiscard]] std::int64_t views_of(PathId path, std::int64_t tokens) const {
    return tokens / tokens_per_view(views(), path);
  }

  Config config_;
  Processor processor_;
  Weights weights_;
  std::array<blocks::ViewLayout, kNumPaths> layouts_;
  GraphSpec spec_;
};

std::vector<std::pair<std::string, std::string>> Model::facts() const {
  const Config& c = config_;
  const std::int64_t global = views()[kGlobal].side_px;
  const std::int64_t tile = views()[kLocal].side_px;
  return {
      {"SAM width", cat(c.sam_width)},
      {"SAM layers", cat(c.sam_layers)},
      {"SAM heads", cat(c.sam_heads)},
      {"CLIP width", cat(c.clip_width)},
      {"CLIP layers", cat(c.clip_layers)},
      {"CLIP heads", cat(c.clip_heads)},
      {"global view", cat(global, "x", global)},
      {"local tiles", cat("up to ", processor_.processing().max_tiles, " of ", tile, "x", tile)}};
}

std::unique_ptr<EncoderGraphModel> make(const checkpoint::HfConfig& files,
                                        const MediaOptions& media, blocks::WeightLoader& loader) {
  const Config config = parse_config(files);
  Processing processing = read_processing(files, media);
  const media::NormalizeTable table =
      media::to_tensor_normalize_table(processing.image_mean, processing.image_std);
  Weights weights = load_weights(loader, config, processing.views, table);
  return std::make_unique<Model>(config, std::move(processing), std::move(weights));
}

}  // namespace

const ModelFamily& family() noexcept {
  static constexpr ModelFamily kFamily{.name = "deepseek_ocr",
                                       .architectures = kArchitectures,
                                       .anchor_folder = "",
                                       .anchor_tensor = "sam_model.patch_embed.proj.weight",
                                       .make = &make};
  return kFamily;
}

}  // namespace fovea::deepseek_ocr
