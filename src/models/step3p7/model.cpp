// Step-3.7 behind the model protocol: two paths, one for every image as a whole and one for the
// windows of large ones. Source: docs/reference/step3p7.md, "Encoder graphs".
#include "models/step3p7/model.h"

#include <algorithm>
#include <array>
#include <memory>
#include <utility>
#include <vector>

#include "core/check.h"
#include "models/common/views/model.h"
#include "models/common/views/windows.h"
#include "models/step3p7/processor.h"

namespace fovea::step3p7 {

namespace {

constexpr std::array kArchitectures = std::to_array<std::string_view>(
    {"Step3p7ForConditionalGeneration", "StepVLForConditionalGeneration"});
constexpr const char* kPositions = "positions";

common::ViewTower describe(const Config& c, const Processing& p) {
  const common::SquareView& window = p.views[kLocal];
  return {.width = c.text_hidden_size,
          .paths = {{.name = "global", .layout = layout_of(p.views[kGlobal]), .max_item_views = 1},
                    {.name = "local", .layout = layout_of(window), .allow_zero_tokens = true}},
          .facts = {{"layers", cat(c.layers)},
                    {"width", cat(c.width)},
                    {"heads", cat(c.heads)},
                    {"MLP width", cat(c.mlp_width())},
                    {"image_size", cat(c.view.side_px)},
                    {"windows", cat("of ", window.side_px, "x", window.side_px)}}};
}

class Model final : public common::ViewModel {
 public:
  Model(const Config& config, const Processing& processing, Weights weights)
      : ViewModel(describe(config, processing), std::make_unique<Processor>(processing)),
        config_(config),
        views_(processing.views),
        weights_(std::move(weights)) {}

  [[nodiscard]] std::vector<BufferDecl> inputs(PathId path,
                                               const GraphCapacity& capacity) const override {
    std::vector<BufferDecl> decls = ViewModel::inputs(path, capacity);
    decls.push_back({kPositions, DType::kI32, {positions_of(path, capacity), 4}});
    return decls;
  }
  /// Positions are those of the patches of one chunk, since all views are alike.
  void fill_inputs(PathId path, const GraphCapacity& capacity, std::span<const ItemPart> parts,
                   InputWriter& writer) const override {
    ViewModel::fill_inputs(path, capacity, parts, writer);
    const common::SquareView& view = views_[static_cast<std::size_t>(path)];
    const std::int64_t rows = positions_of(path, capacity);
    auto* position = writer.claim(kPositions, rows).as<std::int32_t>();
    const auto side = static_cast<std::int32_t>(view.grid());
    for (std::int64_t row = 0; row < rows; row += view.patches()) {
      common::for_each_patch(view, [&](std::int64_t y, std::int64_t x) {
        for (const std::int64_t v : {y, x}) *position++ = static_cast<std::int32_t>(v);
        position = std::fill_n(position, 2, side);
      });
    }
  }

  void forward(ExecContext& ctx, PathId path, const GraphCapacity& capacity, const NamedTensors& in,
               TensorView out) const override {
    const common::SquareView& view = views_[static_cast<std::size_t>(path)];
    for (const common::ViewBatch& chunk : view_inputs(path, capacity, in).chunks) {
      step3p7::forward(ctx, config_, weights_, chunk,
                       row_range(in[kPositions], 0, chunk.count * view.patches()),
                       row_range(out, chunk.first * view.tokens(), chunk.count * view.tokens()));
    }
  }

  void assemble(ExecContext& ctx, PathId path, TensorView rows, std::span<const ItemPart> parts,
                std::span<const TensorView> out) const override {
    common::assemble_windows(ctx, path == kGlobal, rows, parts, out);
  }

 private:
  [[nodiscard]] std::int64_t positions_of(PathId path, const GraphCapacity& capacity) const {
    const common::SquareView& view = views_[static_cast<std::size_t>(path)];
    return std::min(views_of(path, capacity), layout_of(view).views_per_chunk) * view.patches();
  }

  Config config_;
  std::array<common::SquareView, kNumPaths> views_;
  Weights weights_;
};

std::unique_ptr<EncoderGraphModel> make(const checkpoint::HfConfig& files,
                                        const MediaOptions& media, common::WeightLoader& loader) {
  const Config config = parse_config(files);
  const Processing processing = read_processing(files, config, media);
  Weights weights = load_weights(loader, config, processing.scaling.table());
  return std::make_unique<Model>(config, processing, std::move(weights));
}

}  // namespace

const ModelFamily& family() noexcept {
  static constexpr ModelFamily kFamily{.name = "step3p7",
                                       .architectures = kArchitectures,
                                       .anchor_folder = "",
                                       .anchor_tensor = "vision_model.conv1.weight",
                                       .make = &make};
  return kFamily;
}

}  // namespace fovea::step3p7
