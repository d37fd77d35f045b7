// Step3-VL behind the model protocol: two paths, one for every image as a whole and one for the
// windows of large ones. Source: docs/reference/step3_vl.md, "Encoder graphs".
#include "models/step3_vl/model.h"

#include <array>
#include <memory>
#include <utility>

#include "core/check.h"
#include "models/common/views/model.h"
#include "models/common/views/windows.h"
#include "models/step3_vl/config.h"
#include "models/step3_vl/processor.h"

namespace fovea::step3_vl {

namespace {

constexpr std::array<std::string_view, 1> kArchitectures{"Step3VLForConditionalGeneration"};

common::ViewTower describe(const Config& c) {
  return {
      .width = c.text_hidden_size,
      .max_token_budget = c.max_tokens,
      .paths = {{.name = "global", .layout = layout_of(kViews[kGlobal]), .max_item_views = 1},
                {.name = "local", .layout = layout_of(kViews[kLocal]), .allow_zero_tokens = true}},
      .facts = {{"hidden_size", cat(c.hidden_size)},
                {"num_hidden_layers", cat(c.num_hidden_layers)},
                {"num_attention_heads", cat(c.num_attention_heads)},
                {"intermediate_size", cat(c.intermediate_size)},
                {"windows", c.enable_patch ? "of 504x504 or less" : "none"}}};
}

class Model final : public common::ViewModel {
 public:
  Model(const Config& config, Weights weights)
      : ViewModel(describe(config), std::make_unique<Processor>(config.enable_patch)),
        weights_(std::move(weights)) {}

  void forward(ExecContext& ctx, PathId path, const GraphCapacity& capacity, const NamedTensors& in,
               TensorView out) const override {
    const auto index = static_cast<Path>(path);
    const std::int64_t tokens = kViews[index].tokens();
    for (const common::ViewBatch& chunk : view_inputs(path, capacity, in).chunks) {
      step3_vl::forward(ctx, weights_, index, chunk,
                        row_range(out, chunk.first * tokens, chunk.count * tokens));
    }
  }

  /// Rows of an item: those of its windows, then those of the whole image.
  void assemble(ExecContext& ctx, PathId path, TensorView rows, std::span<const ItemPart> parts,
                std::span<const TensorView> out) const override {
    common::assemble_windows(ctx, path == kGlobal, rows, parts, out);
  }

 private:
  Weights weights_;
};

std::unique_ptr<EncoderGraphModel> make(const checkpoint::HfConfig& files, const MediaOptions&,
                                        common::WeightLoader& loader) {
  const Config config = parse_config(files);
  return std::make_unique<Model>(config, load_weights(loader, config));
}

}  // namespace

const ModelFamily& family() noexcept {
  static constexpr ModelFamily kFamily{
      .name = "step3_vl",
      .architectures = kArchitectures,
      .anchor_folder = "",
      .anchor_tensor = "vision_model.embeddings.patch_embedding.weight",
      .make = &make};
  return kFamily;
}

}  // namespace fovea::step3_vl
