// DeepSeek-OCR 2 behind the model protocol: two paths, one for the global view of every image and
// one for the tiles of large ones. Source: docs/reference/deepseek_ocr2.md, "Encoder graphs".
#include "models/deepseek_ocr2/model.h"

#include <algorithm>
#include <array>
#include <memory>
#include <string_view>
#include <utility>

#include "core/check.h"
#include "models/common/views/model.h"
#include "models/common/views/token_grid.h"
#include "models/deepseek_ocr2/processor.h"

namespace fovea::deepseek_ocr2 {

namespace {

constexpr auto kImageOptions =
    std::to_array<std::string_view>({"min_patches", "max_patches", "crop_to_patches"});

constexpr std::array<std::string_view, 2> kArchitectures{"DeepseekOCR2ForCausalLM",
                                                         "DeepseekOcr2ForConditionalGeneration"};
constexpr const char* kPositions = "positions";

common::ViewTower describe(const Config& c, const common::CanvasTiles& views) {
  const std::int64_t global = views.canvas.side_px;
  const std::int64_t tile = views.tile.side_px;
  return {.width = c.n_embed,
          .max_token_budget = c.max_position_embeddings,
          .paths = {{.name = "global", .layout = layout_of(views.canvas), .max_item_views = 1},
                    {.name = "local",
                     .layout = layout_of(views.tile),
                     .allow_zero_tokens = true,
                     .max_item_views = std::max<std::int64_t>(1, views.max_tiles)}},
          .facts = {{"SAM width", cat(c.sam.width)},
                    {"SAM layers", cat(c.sam.layers)},
                    {"SAM heads", cat(c.sam.heads)},
                    {"decoder width", cat(c.decoder.hidden_size)},
                    {"decoder layers", cat(c.decoder.num_hidden_layers)},
                    {"decoder heads", cat(c.decoder.num_attention_heads, ", ",
                                          c.decoder.num_key_value_heads, " of keys")},
                    {"global view", cat(global, "x", global)},
                    {"local tiles", cat("up to ", views.max_tiles, " of ", tile, "x", tile)}}};
}

/// Writes the place of each row in its sequence, as ops::RopeAnglesArgs has positions.
void write_positions(std::int64_t sequences, std::int64_t rows, std::int32_t* out) {
  for (std::int64_t s = 0; s < sequences; ++s) {
    for (std::int64_t row = 0; row < rows; ++row, out += 4) {
      const auto place = static_cast<std::int32_t>(row);
      out[0] = out[1] = place;
      out[2] = out[3] = 0;
    }
  }
}

class Model final : public common::ViewModel {
 public:
  Model(const Config& config, const Processing& processing, Weights weights)
      : ViewModel(describe(config, processing.views), std::make_unique<Processor>(processing)),
        config_(config),
        views_(processing.views_of_paths()),
        weights_(std::move(weights)) {}

  [[nodiscard]] std::vector<BufferDecl> inputs(PathId path,
                                               const GraphCapacity& capacity) const override {
    std::vector<BufferDecl> buffers = ViewModel::inputs(path, capacity);
    const std::int64_t rows = views_of(path, capacity) * rows_of_sequence(path);
    buffers.push_back({kPositions, DType::kI32, {rows, 4}});
    return buffers;
  }

  void fill_inputs(PathId path, const GraphCapacity& capacity, std::span<const ItemPart> parts,
                   InputWriter& writer) const override {
    ViewModel::fill_inputs(path, capacity, parts, writer);
    const std::int64_t views = views_of(parts);
    const std::int64_t rows = rows_of_sequence(path);
    write_positions(views, rows, writer.claim(kPositions, views * rows).as<std::int32_t>());
  }

  void forward(ExecContext& ctx, PathId path, const GraphCapacity& capacity, const NamedTensors& in,
               TensorView out) const override {
    deepseek_ocr2::forward(ctx, {config_, weights_, static_cast<Path>(path)},
                           view_inputs(path, capacity, in), in[kPositions], out);
  }

  /// Tiles come first, one after the other, then the global view and a separator.
  void assemble(ExecContext& ctx, PathId path, TensorView rows, std::span<const ItemPart> parts,
                std::span<const TensorView> out) const override {
    std::int64_t taken = 0;
    for (std::size_t i = 0; i < parts.size(); ++i) {
      const std::int64_t count = parts[i].tokens();
      const std::int64_t last = out[i].shape[0] - 1;
      const std::int64_t first =
          path == kGlobal ? last - count : parts[i].first * views_[kLocal].tokens();
      const TensorView from = row_range(rows, taken, count);
      ctx.stream.copy(row_range(out[i], first, count).data, from.data, from.bytes());
      if (path == kGlobal)
        common::put_row(ctx, weights_.view_seperator, row_range(out[i], last, 1));
      taken += count;
    }
  }

 private:
  [[nodiscard]] std::int64_t rows_of_sequence(PathId path) const {
    return layout_of(views_[static_cast<std::size_t>(path)]).sequence.rows();
  }

  Config config_;
  Views views_;
  Weights weights_;
};

std::unique_ptr<EncoderGraphModel> make(const checkpoint::HfConfig& files,
                                        const MediaOptions& media, common::WeightLoader& loader) {
  const Config config = parse_config(files);
  const Processing processing = read_processing(files, config.format, media);
  Weights weights = load_weights(loader, config, processing.views_of_paths(), processing.table);
  return std::make_unique<Model>(config, processing, std::move(weights));
}

/// As transformers names its modules. Source: transformers 5.24, conversion_mapping.py.
constexpr std::array<common::RenamedPart, 16> kModules{{
    {"sam_model.patch_embed.proj", "vision_tower.sam_encoder.patch_embed.projection"},
    {"sam_model.neck.0", "vision_tower.sam_encoder.neck.conv1"},
    {"sam_model.neck.1", "vision_tower.sam_encoder.neck.layer_norm1"},
    {"sam_model.neck.2", "vision_tower.sam_encoder.neck.conv2"},
    {"sam_model.neck.3", "vision_tower.sam_encoder.neck.layer_norm2"},
    {"sam_model.net_2", "vision_tower.sam_encoder.proj.conv1"},
    {"sam_model.net_3", "vision_tower.sam_encoder.proj.conv2"},
    {"sam_model.blocks.", "vision_tower.sam_encoder.layers."},
    {"sam_model.", "vision_tower.sam_encoder."},
    {".norm1", ".layer_norm1"},
    {".norm2", ".layer_norm2"},
    {"qwen2_model.query_1024", "vision_tower.query_1024_resolution"},
    {"qwen2_model.query_768", "vision_tower.query_768_resolution"},
    {"qwen2_model.model.model.", "vision_tower.vision_encoder."},
    {"projector.layers", "multi_modal_projector"},
    {"view_seperator", "view_separator"},
}};
constexpr std::array<common::OtherNames, 1> kOtherNames{{
    {"", "vision_tower.sam_encoder.patch_embed.projection.weight", kModules},
}};

}  // namespace

const ModelFamily& family() noexcept {
  static constexpr ModelFamily kFamily{.name = "deepseek_ocr2",
                                       .architectures = kArchitectures,
                                       .anchor_folder = "",
                                       .anchor_tensor = "sam_model.patch_embed.proj.weight",
                                       .make = &make,
                                       .item_options = {.image = kImageOptions},
                                       .other_names = kOtherNames};
  return kFamily;
}

}  // namespace fovea::deepseek_ocr2
