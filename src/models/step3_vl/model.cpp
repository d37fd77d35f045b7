// Step3-VL behind the model protocol: two paths, one for every image as a whole and one for the
// windows of large ones. Source: docs/reference/step3_vl.md, "Encoder graphs".
#include "models/step3_vl/model.h"

#include <array>
#include <memory>
#include <utility>

#include "core/check.h"
#include "models/step3_vl/config.h"
#include "models/step3_vl/forward.h"
#include "models/step3_vl/processor.h"
#include "models/step3_vl/weights.h"

namespace fovea::step3_vl {

namespace {

constexpr std::array<std::string_view, 1> kArchitectures{"Step3VLForConditionalGeneration"};

using Items = std::span<const PreparedItem* const>;

const View& view_of(PathId path) { return kViews[static_cast<std::size_t>(path)]; }

std::int64_t tokens_of(const PreparedItem& item, PathId path) {
  return item.plan.spec.path_tokens[static_cast<std::size_t>(path)];
}

GraphSpec describe(const Config& c) {
  const std::int64_t global = view_of(kGlobal).tokens();
  const std::int64_t local = view_of(kLocal).tokens();
  GraphSpec spec;
  spec.modalities = {Modality::kImage};
  spec.main_width = c.text_hidden_size;
  spec.out_width = c.text_hidden_size;
  spec.min_token_budget = global;
  spec.max_token_budget = c.max_tokens;
  spec.paths = {
      {.name = "global", .min_token_budget = global, .unit = global, .max_item_tokens = global},
      {.name = "local", .min_token_budget = local, .allow_zero_tokens = true, .unit = local}};
  return spec;
}

class Model final : public EncoderGraphModel {
 public:
  Model(const Config& config, Weights weights)
      : config_(config),
        processor_(config.enable_patch),
        weights_(std::move(weights)),
        layouts_{layout_of(view_of(kGlobal)), layout_of(view_of(kLocal))},
        spec_(describe(config)) {}

  [[nodiscard]] const GraphSpec& graph_spec() const noexcept override { return spec_; }
  [[nodiscard]] const ItemProcessor& processor() const noexcept override { return processor_; }
  [[nodiscard]] std::vector<std::pair<std::string, std::string>> facts() const override {
    return {{"hidden_size", cat(config_.hidden_size)},
            {"num_hidden_layers", cat(config_.num_hidden_layers)},
            {"num_attention_heads", cat(config_.num_attention_heads)},
            {"intermediate_size", cat(config_.intermediate_size)},
            {"windows", config_.enable_patch ? "of 504x504 or less" : "none"}};
  }
  [[nodiscard]] std::int64_t path_width(PathId) const override { return spec_.out_width; }

  [[nodiscard]] std::vector<BufferDecl> inputs(PathId path,
                                               const GraphCapacity& capacity) const override {
    return blocks::ViewInputs::declare(layout(path), views_of(path, capacity.tokens));
  }

  void fill_inputs(PathId path, const GraphCapacity& capacity, Items items,
                   InputWriter& writer) const override {
    const std::size_t whole_bytes = view_of(kGlobal).pixel_bytes();
    std::int64_t tokens = 0;
    for (const PreparedItem* item : items) tokens += tokens_of(*item, path);
    std::byte* to = blocks::ViewInputs::fill(layout(path), views_of(path, capacity.tokens),
                                             views_of(path, tokens), items.size(), writer);
    for (const PreparedItem* item : items) {
      const std::span<const std::uint8_t> pixels(item->pixels);
      const auto mine = path == kGlobal ? pixels.first(whole_bytes) : pixels.subspan(whole_bytes);
      writer.copy(to, mine);
      to += mine.size();
    }
  }

  void forward(ExecContext& ctx, PathId path, const GraphCapacity& capacity, const NamedTensors& in,
               TensorView out) const override {
    step3_vl::forward(ctx, {config_, weights_, view_of(path), static_cast<Path>(path)},
                      blocks::ViewInputs::of(layout(path), views_of(path, capacity.tokens), in),
                      out);
  }

  /// Rows of an item: those of its windows, then those of the whole image.
  void assemble(ExecContext& ctx, std::span<const PathOutput> outputs, Items items,
                std::span<const TensorView> out) const override {
    std::array<std::int64_t, kNumPaths> taken{};
    for (std::size_t i = 0; i < items.size(); ++i) {
      std::int64_t row = 0;
      for (const Path path : {kLocal, kGlobal}) {
        const std::int64_t count = tokens_of(*items[i], path);
        if (count == 0) continue;
        const TensorView from = row_range(outputs[path].rows, taken[path], count);
        ctx.stream.copy(row_range(out[i], row, count).data, from.data, from.bytes());
        taken[path] += count;
        row += count;
      }
    }
  }

 private:
  [[nodiscard]] const blocks::ViewLayout& layout(PathId path) const {
    return layouts_[static_cast<std::size_t>(path)];
  }
  static std::int64_t views_of(PathId path, std::int64_t tokens) {
    return tokens / view_of(path).tokens();
  }

  Config config_;
  Processor processor_;
  Weights weights_;
  std::array<blocks::ViewLayout, kNumPaths> layouts_;
  GraphSpec spec_;
};

std::unique_ptr<EncoderGraphModel> make(const checkpoint::HfConfig& files, const MediaOptions&,
                                        blocks::WeightLoader& loader) {
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
