// DeepSeek-OCR behind the encoder graph protocol: two paths, one for the global view of every
// picture and one for the tiles of large ones, and the assembly of their outputs into final rows.
// Source: DeepSeek-OCR specification, sections 6 and 7.
#include "models/deepseek_ocr/adapter.h"

#include <algorithm>
#include <array>

#include "core/check.h"
#include "media/normalize.h"
#include "models/blocks/pixel_offsets.h"
#include "models/deepseek_ocr/config.h"
#include "models/deepseek_ocr/forward.h"
#include "models/deepseek_ocr/preprocess.h"
#include "models/deepseek_ocr/weights.h"
#include "ops/rows.h"

namespace fovea::deepseek_ocr {

namespace {

constexpr std::array<std::string_view, 1> kArchitectures{"DeepseekOCRForCausalLM"};

/// Entries of the buffer "live": counts of all views, then kNumChunkLive counts per SAM chunk.
enum Live : std::int64_t { kViews, kClipRows, kTokens, kGridRows, kNumLive };
enum ChunkCount : std::int64_t {
  kChunkViews,
  kChunkGrid,
  kChunkHalf,
  kChunkFeatures,
  kNumChunkLive
};

class Model final : public EncoderGraphModel {
 public:
  Model(Config config, PreprocessConfig preprocess, Weights weights, Tensor normalize_table)
      : config_(std::move(config)),
        preprocess_(preprocess),
        views_{preprocess.base, preprocess.tile},
        weights_(std::move(weights)),
        normalize_table_(std::move(normalize_table)) {
    spec_.modalities = {Modality::kImage};
    spec_.out_width = config_.n_embed;
    spec_.paths = {{.name = "global",
                    .min_token_budget = tokens_per_view(kGlobal),
                    .unit = tokens_per_view(kGlobal),
                    .max_item_tokens = tokens_per_view(kGlobal)},
                   {.name = "local",
                    .min_token_budget = tokens_per_view(kLocal),
                    .allow_zero_tokens = true,
                    .unit = tokens_per_view(kLocal),
                    .max_item_tokens = preprocess_.max_crops * tokens_per_view(kLocal)}};
  }

  [[nodiscard]] const GraphSpec& graph_spec() const noexcept override { return spec_; }

  [[nodiscard]] BudgetRange budget_range(std::int64_t max_tokens) const override {
    const std::int64_t top = std::min(max_tokens, config_.max_position_embeddings);
    return {std::min(tokens_per_view(kGlobal), top), top};
  }

  [[nodiscard]] ItemPlan plan_image(std::int64_t width_px, std::int64_t height_px) const override {
    return deepseek_ocr::plan_image(preprocess_, width_px, height_px);
  }

  [[nodiscard]] ItemPlan plan_video(std::int64_t, std::int64_t, std::int64_t) const override {
    FOVEA_CHECK(false, kUnsupported, "DeepSeek-OCR takes no videos");
  }

  void fill_pixels(const ItemPlan& plan, std::span<const RgbView> frames,
                   std::span<std::uint8_t> out) const override {
    FOVEA_CHECK(frames.size() == 1, kInvalidArgument, "a picture has 1 frame, got ", frames.size());
    deepseek_ocr::fill_pixels(preprocess_, plan, frames.front(), out);
  }

  [[nodiscard]] std::int64_t path_width(PathId) const override { return config_.n_embed; }

  [[nodiscard]] std::vector<BufferDecl> inputs(PathId path,
                                               const GraphCapacity& capacity) const override {
    const ViewGeometry& view = views_[index(path)];
    const std::int64_t views = capacity.tokens / tokens_per_view(path);
    return {{"live", DType::kI32, {kNumLive + kNumChunkLive * num_chunks(path, views)}},
            {"cu_seqlens", DType::kI32, {views + 1}, PadRule::kRepeatLast},
            {"sources", DType::kI32, {views * view.grid() * view.grid(), 4}},
            {"pixels", DType::kU8, {views * static_cast<std::int64_t>(view.pixel_bytes())}}};
  }

  void fill_inputs(PathId path, const GraphCapacity& capacity,
                   std::span<const PreparedItem* const> items, InputWriter& writer) const override {
    const ViewGeometry& view = views_[index(path)];
    std::int64_t views = 0;
    for (const PreparedItem* item : items) views += views_of(path, *item);
    const auto view_bytes = static_cast<std::int64_t>(view.pixel_bytes());
    blocks::check_pixel_offsets(views * view_bytes, items.size());
    fill_live(path, capacity.tokens / tokens_per_view(path), views, writer);

    auto* cu_seqlens = writer.claim("cu_seqlens", views + 1).as<std::int32_t>();
    for (std::int64_t v = 0; v <= views; ++v) {
      cu_seqlens[v] = static_cast<std::int32_t>(v * (view.tokens() + 1));
    }
    auto* sources = writer.claim("sources", views * view.grid() * view.grid()).as<std::int32_t>();
    for (std::int64_t v = 0; v < views; ++v) sources = write_sources(view, v, sources);

    std::byte* pixels = writer.claim("pixels", views * view_bytes).data;
    for (const PreparedItem* item : items) {
      // Pixels of an item: the global view, then the tiles.
      const std::size_t begin = path == kGlobal ? 0 : preprocess_.base.pixel_bytes();
      const auto bytes = static_cast<std::size_t>(views_of(path, *item) * view_bytes);
      writer.copy(pixels, std::span(item->pixels).subspan(begin, bytes));
      pixels += bytes;
    }
  }

  void forward(ExecContext& ctx, PathId path, const GraphCapacity& capacity, const NamedTensors& in,
               TensorView out) const override {
    const auto* live = in["live"].as<std::int32_t>();
    Inputs inputs{.pixels = in["pixels"],
                  .sources = in["sources"],
                  .cu_seqlens = in["cu_seqlens"],
                  .views = {live + kViews},
                  .clip_rows = {live + kClipRows},
                  .tokens = {live + kTokens},
                  .grid_rows = {live + kGridRows},
                  .chunks = {}};
    const std::int64_t chunks = num_chunks(path, capacity.tokens / tokens_per_view(path));
    for (std::int64_t chunk = 0; chunk < chunks; ++chunk) {
      const auto* counts = live + kNumLive + chunk * kNumChunkLive;
      inputs.chunks.push_back({.views = {counts + kChunkViews},
                               .grid = {counts + kChunkGrid},
                               .half = {counts + kChunkHalf},
                               .features = {counts + kChunkFeatures}});
    }
    deepseek_ocr::forward(ctx, config_, weights_, index(path), views_[index(path)],
                          normalize_table_.view(), inputs, path == kGlobal, out);
  }

  void assemble(ExecContext& ctx, std::span<const PathOutput> outputs,
                std::span<const PreparedItem* const> items,
                std::span<const TensorView> out) const override {
    TensorView global = outputs[kGlobal].rows;
    TensorView local = outputs[kLocal].rows;
    for (std::size_t i = 0; i < items.size(); ++i) {
      const ItemPlan& plan = items[i]->plan;
      TensorView rows = out[i];
      assemble_tiles(ctx, tiling_of(plan), local, rows);
      copy_rows(ctx, take_rows(global, plan.spec.path_tokens[kGlobal]),
                take_rows(rows, plan.spec.path_tokens[kGlobal]));
      ops::copy_row_blocks(ctx, {.x = weights_.view_seperator.view(),
                                 .x_block_rows = 0,
                                 .count = 1,
                                 .out = take_rows(rows, 1),
                                 .out_block_rows = 1});
    }
  }

 private:
  static std::size_t index(PathId path) { return static_cast<std::size_t>(path); }

  /// Tokens that one view contributes to its path's budget, newline rows included.
  [[nodiscard]] std::int64_t tokens_per_view(PathId path) const {
    const std::int64_t side = views_[index(path)].tokens_side();
    return path == kGlobal ? side * (side + 1) : side * side;
  }

  [[nodiscard]] std::int64_t views_of(PathId path, const PreparedItem& item) const {
    return item.plan.spec.path_tokens[index(path)] / tokens_per_view(path);
  }

  [[nodiscard]] std::int64_t num_chunks(PathId path, std::int64_t views) const {
    const std::int64_t step = views_per_chunk(views_[index(path)]);
    return (views + step - 1) / step;
  }

  void fill_live(PathId path, std::int64_t capacity_views, std::int64_t views,
                 InputWriter& writer) const {
    const ViewGeometry& view = views_[index(path)];
    const std::int64_t chunks = num_chunks(path, capacity_views);
    auto* live = writer.claim("live", kNumLive + kNumChunkLive * chunks).as<std::int32_t>();
    const auto put = [](std::int32_t* at, std::int64_t value) {
      *at = static_cast<std::int32_t>(value);
    };
    put(live + kViews, views);
    put(live + kClipRows, views * (view.tokens() + 1));
    put(live + kTokens, views * view.tokens());
    put(live + kGridRows, views * view.tokens_side());
    const std::int64_t grid = view.grid() * view.grid();
    const std::int64_t step = views_per_chunk(view);
    for (std::int64_t chunk = 0; chunk < chunks; ++chunk) {
      const std::int64_t here = std::clamp<std::int64_t>(views - chunk * step, 0, step);
      std::int32_t* counts = live + kNumLive + chunk * kNumChunkLive;
      put(counts + kChunkViews, here);
      put(counts + kChunkGrid, here * grid);
      put(counts + kChunkHalf, here * grid / 4);
      put(counts + kChunkFeatures, here * grid / 16);
    }
  }

  /// Patch rows of one view, row-major. @return the place after them.
  static std::int32_t* write_sources(const ViewGeometry& view, std::int64_t number,
                                     std::int32_t* sources) {
    const std::int64_t row_stride = view.side_px * 3;
    const std::int64_t begin = number * static_cast<std::int64_t>(view.pixel_bytes());
    for (std::int64_t y = 0; y < view.grid(); ++y) {
      for (std::int64_t x = 0; x < view.grid(); ++x) {
        const std::int64_t offset = begin + (y * row_stride + x * 3) * Config::kPatch;
        for (const std::int64_t value : {offset, row_stride, std::int64_t{0}, std::int64_t{0}}) {
          *sources++ = static_cast<std::int32_t>(value);
        }
      }
    }
    return sources;
  }

  /// The first `count` rows of `rows`, which then begins after them.
  static TensorView take_rows(TensorView& rows, std::int64_t count) {
    const TensorView taken{rows.data, rows.dtype, {count, rows.shape[1]}};
    rows = {rows.data + taken.bytes(), rows.dtype, {rows.shape[0] - count, rows.shape[1]}};
    return taken;
  }

  static void copy_rows(ExecContext& ctx, TensorView from, TensorView to) {
    ctx.stream.copy(to.data, from.data, from.bytes());
  }

  /// Lays the tiles of one picture out as the token grid of the whole picture, each row of it ended
  /// by a newline. Takes the tiles from `local` and the rows from `rows`.
  void assemble_tiles(ExecContext& ctx, Tiling tiling, TensorView& local, TensorView& rows) const {
    if (!tiling.tiled()) return;
    const std::int64_t side = preprocess_.tile.tokens_side();
    const std::int64_t row = tiling.cols * side + 1;  // tokens of a picture row, newline included
    for (std::int64_t tile_y = 0; tile_y < tiling.rows; ++tile_y) {
      const TensorView band = take_rows(rows, side * row);
      for (std::int64_t tile_x = 0; tile_x < tiling.cols; ++tile_x) {
        ops::copy_row_blocks(ctx, {.x = take_rows(local, side * side),
                                   .x_block_rows = side,
                                   .count = side,
                                   .out = band,
                                   .out_block_rows = row,
                                   .out_first = tile_x * side});
      }
      ops::copy_row_blocks(ctx, {.x = weights_.image_newline.view(),
                                 .x_block_rows = 0,
                                 .count = 1,
                                 .out = band,
                                 .out_block_rows = row,
                                 .out_first = row - 1});
    }
  }

  Config config_;
  PreprocessConfig preprocess_;
  std::array<ViewGeometry, 2> views_;  // per path
  Weights weights_;
  Tensor normalize_table_;
  GraphSpec spec_;
};

std::array<ViewGeometry, 2> views_of(const PreprocessConfig& p) { return {p.base, p.tile}; }

/// The text in front of the tower's tensor names.
std::string weight_prefix(const checkpoint::WeightSource& source) {
  if (source.is_dummy()) return "model.";
  const auto prefix =
      checkpoint::find_prefix(source.names(), "", "sam_model.patch_embed.proj.weight");
  FOVEA_CHECK(prefix.has_value(), kNotFound, "checkpoint holds no vision tower: none of its ",
              source.names().size(), " tensors ends with \"sam_model.patch_embed.proj.weight\"");
  return *prefix;
}

std::unique_ptr<EncoderGraphModel> make_planner(const checkpoint::HfConfig& files,
                                                const MediaOptions& media) {
  const Config config = parse_config(files);
  const PreprocessConfig preprocess = parse_preprocess_config(files, media);
  const auto dummy = checkpoint::WeightSource::dummy(0);
  blocks::WeightLoader shapes(dummy, weight_prefix(dummy));
  return std::make_unique<Model>(config, preprocess,
                                 load_weights(shapes, config, views_of(preprocess)),
                                 blocks::tensor_without_memory(DType::kF32, {3, 256}));
}

std::unique_ptr<EncoderGraphModel> load(const checkpoint::HfConfig& files,
                                        const MediaOptions& media,
                                        const checkpoint::WeightSource& source, Device& device,
                                        Stream& stream) {
  const Config config = parse_config(files);
  const PreprocessConfig p = parse_preprocess_config(files, media);
  const std::string prefix = weight_prefix(source);
  blocks::WeightLoader checker(source, prefix);
  (void)load_weights(checker, config, views_of(p));
  checker.throw_if_incomplete();
  blocks::WeightLoader loader(source, prefix, device, stream);
  const media::NormalizeTable table = media::to_tensor_normalize_table(p.image_mean, p.image_std);
  return std::make_unique<Model>(
      config, p, load_weights(loader, config, views_of(p)),
      upload(device, stream,
             {reinterpret_cast<const std::byte*>(table[0].data()), DType::kF32, {3, 256}}));
}

ModelReport describe(const checkpoint::HfConfig& files, const checkpoint::WeightSource& source) {
  const Config c = parse_config(files);
  const PreprocessConfig p = parse_preprocess_config(files, {});
  blocks::WeightLoader checker(source, weight_prefix(source));
  (void)load_weights(checker, c, views_of(p));
  ModelReport report;
  report.architecture = files.architecture();
  report.family = family().name;
  report.hidden = c.n_embed;
  report.width = c.n_embed;
  report.videos = false;
  report.tensors = checker.report();
  report.parameters = checker.parameters();
  const auto fact = [&](const char* name, const auto& value) {
    report.facts.emplace_back(name, cat(value));
  };
  fact("SAM width", c.sam_width);
  fact("SAM layers", c.sam_layers);
  fact("SAM heads", c.sam_heads);
  fact("CLIP width", c.clip_width);
  fact("CLIP layers", c.clip_layers);
  fact("CLIP heads", c.clip_heads);
  fact("global view", cat(p.base.side_px, "x", p.base.side_px));
  fact("local tiles", cat("up to ", p.max_crops, " of ", p.tile.side_px, "x", p.tile.side_px));
  return report;
}

}  // namespace

const ModelFamily& family() noexcept {
  static constexpr ModelFamily kFamily{"deepseek_ocr", kArchitectures, &make_planner,
                                       &load,          &describe,      &assumptions};
  return kFamily;
}

}  // namespace fovea::deepseek_ocr
