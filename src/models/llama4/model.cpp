// Llama 4 behind the model protocol. Source: docs/reference/llama4.md, "Encoder graphs".
#include "models/llama4/model.h"

#include <array>
#include <memory>
#include <string_view>
#include <utility>

#include "core/check.h"
#include "models/common/views/model.h"
#include "models/llama4/config.h"
#include "models/llama4/processor.h"

namespace fovea::llama4 {

namespace {

constexpr auto kImageOptions =
    std::to_array<std::string_view>({"max_patches", "resize_to_max_canvas"});

constexpr std::array<std::string_view, 1> kArchitectures{"Llama4ForConditionalGeneration"};

constexpr const char* kPositions = "positions";

common::ViewTower describe(const Config& c, const Processing& p) {
  const std::int64_t most_tiles = p.max_patches + 1;  // of the largest canvas, and the whole image
  const std::int64_t side = c.view.side_px;
  return {.width = c.text_hidden_size,
          .paths = {{.layout = layout_of(c), .max_item_views = most_tiles}},
          .facts = common::transformer_facts(
              c, {{"tiles", cat("up to ", most_tiles, " of ", side, "x", side)}})};
}

class Model final : public common::ViewModel {
 public:
  Model(const Config& config, const Processing& processing, Weights weights)
      : ViewModel(describe(config, processing), std::make_unique<Processor>(processing)),
        config_(config),
        weights_(std::move(weights)) {}

  [[nodiscard]] std::vector<BufferDecl> inputs(PathId path,
                                               const GraphCapacity& capacity) const override {
    std::vector<BufferDecl> buffers = ViewModel::inputs(path, capacity);
    buffers.push_back({kPositions, DType::kI32, {views_of(path, capacity) * seq_rows(), 4}});
    return buffers;
  }

  void fill_inputs(PathId path, const GraphCapacity& capacity, std::span<const ItemPart> parts,
                   InputWriter& writer) const override {
    ViewModel::fill_inputs(path, capacity, parts, writer);
    const std::int64_t tiles = views_of(parts);
    const TensorView positions = writer.claim(kPositions, tiles * seq_rows());
    write_positions(config_.view, tiles, positions.as<std::int32_t>());
  }

  void forward(ExecContext& ctx, PathId path, const GraphCapacity& capacity, const NamedTensors& in,
               TensorView out) const override {
    llama4::forward(ctx, config_, weights_, view_inputs(path, capacity, in).all, in[kPositions],
                    out);
  }

 private:
  /// Rows of a tile in the blocks.
  [[nodiscard]] std::int64_t seq_rows() const { return layout_of(config_).sequence.rows(); }

  Config config_;
  Weights weights_;
};

std::unique_ptr<EncoderGraphModel> make(const checkpoint::HfConfig& files,
                                        const MediaOptions& media, common::WeightLoader& loader) {
  const Config config = parse_config(files);
  const Processing processing = read_processing(files, config, media);
  Weights weights = load_weights(loader, config, processing.table());
  return std::make_unique<Model>(config, processing, std::move(weights));
}

}  // namespace

const ModelFamily& family() noexcept {
  static constexpr ModelFamily kFamily{
      .name = "llama4",
      .architectures = kArchitectures,
      .anchor_folder = "",
      .anchor_tensor = "vision_model.patch_embedding.linear.weight",
      .make = &make,
      .item_options = {.image = kImageOptions}};
  return kFamily;
}

}  // namespace fovea::llama4
