// DeepSeek-OCR behind the model protocol: two paths, one for the global view of every image and one
// for the tiles of large ones. Source: docs/reference/deepseek_ocr.md, "Encoder graphs".
#include "models/deepseek_ocr/model.h"

#include <array>
#include <memory>
#include <utility>

#include "core/check.h"
#include "models/common/views/model.h"
#include "models/deepseek_ocr/config.h"
#include "models/deepseek_ocr/processor.h"

namespace fovea::deepseek_ocr {

namespace {

constexpr std::array<std::string_view, 1> kArchitectures{"DeepseekOCRForCausalLM"};

common::ViewTower describe(const Config& c, const Processing& p) {
  const std::int64_t global = p.views[kGlobal].side_px;
  const std::int64_t tile = p.views[kLocal].side_px;
  return {.width = c.n_embed,
          .max_token_budget = c.max_position_embeddings,
          .paths = {{.name = "global",
                     .layout = layout_of(p.views[kGlobal], kGlobal),
                     .max_item_views = 1},
                    {.name = "local",
                     .layout = layout_of(p.views[kLocal], kLocal),
                     .allow_zero_tokens = true,
                     .max_item_views = p.max_tiles}},
          .facts = {{"SAM width", cat(c.sam.width)},
                    {"SAM layers", cat(c.sam.layers)},
                    {"SAM heads", cat(c.sam.heads)},
                    {"CLIP width", cat(c.clip_width)},
                    {"CLIP layers", cat(c.clip_layers)},
                    {"CLIP heads", cat(c.clip_heads)},
                    {"global view", cat(global, "x", global)},
                    {"local tiles", cat("up to ", p.max_tiles, " of ", tile, "x", tile)}}};
}

class Model final : public common::ViewModel {
 public:
  Model(Config config, const Processing& processing, Weights weights)
      : ViewModel(describe(config, processing), std::make_unique<Processor>(processing)),
        config_(std::move(config)),
        views_(processing.views),
        weights_(std::move(weights)) {}

  void forward(ExecContext& ctx, PathId path, const GraphCapacity& capacity, const NamedTensors& in,
               TensorView out) const override {
    deepseek_ocr::forward(ctx, {config_, weights_, static_cast<Path>(path)},
                          view_inputs(path, capacity, in), out);
  }

  void assemble(ExecContext& ctx, PathId, TensorView rows, std::span<const ItemPart> parts,
                std::span<const TensorView> out) const override {
    std::int64_t taken = 0;
    for (std::size_t i = 0; i < parts.size(); ++i) {
      const std::int64_t count = parts[i].tokens();
      assemble_part(ctx, weights_, views_, parts[i], row_range(rows, taken, count), out[i]);
      taken += count;
    }
  }

 private:
  Config config_;
  Views views_;
  Weights weights_;
};

std::unique_ptr<EncoderGraphModel> make(const checkpoint::HfConfig& files,
                                        const MediaOptions& media, common::WeightLoader& loader) {
  const Config config = parse_config(files);
  const Processing processing = read_processing(files, media);
  Weights weights = load_weights(loader, config, processing.views, processing.scaling.table());
  return std::make_unique<Model>(config, processing, std::move(weights));
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
