// Qwen3-VL behind the encoder graph protocol: what buffers a graph of a given capacity has, and
// what goes into them for a batch of items. Source: Qwen and GLM specification, section 9.
#include "models/qwen3_vl/adapter.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>

#include "core/check.h"
#include "models/blocks/pixel_offsets.h"
#include "models/qwen3_vl/config.h"
#include "models/qwen3_vl/forward.h"
#include "models/qwen3_vl/pixel_values.h"
#include "models/qwen3_vl/preprocess.h"
#include "models/qwen3_vl/weights.h"

namespace fovea::qwen3_vl {

namespace {

constexpr std::array<std::string_view, 4> kArchitectures{
    "Qwen3VLForConditionalGeneration", "Qwen3VLMoeForConditionalGeneration",
    "Qwen3_5ForConditionalGeneration", "Qwen3_5MoeForConditionalGeneration"};

constexpr std::int64_t kMinBudget = 64;  // tokens of a 224 x 224 picture at patch size 14
constexpr std::int64_t kMaxFramesPerVideo =
    32;  // sequences a graph offers a video; longer ones run eagerly

/// Entries of the buffer "live".
enum Live : std::size_t { kPatches, kTokens, kSeqs, kNumLive };

std::vector<float> inverse_frequencies(const Config& c) {
  const std::int64_t dim = c.head_dim() / 2;
  std::vector<float> values;
  for (std::int64_t j = 0; j < dim / 2; ++j) {
    const float exponent = static_cast<float>(2 * j) / static_cast<float>(dim);
    values.push_back(1.0f / std::pow(static_cast<float>(c.rope_theta), exponent));
  }
  return values;
}

Tensor upload_floats(Device& device, Stream& stream, const float* values, const Shape& shape) {
  return upload(device, stream, {reinterpret_cast<const std::byte*>(values), DType::kF32, shape});
}

Constants make_constants(Device& device, Stream& stream, const Config& c,
                         const PreprocessConfig& p) {
  const media::NormalizeTable table = normalize_table(p);
  const std::vector<float> inv_freq = inverse_frequencies(c);
  return {
      upload_floats(device, stream, table[0].data(), {3, 256}),
      upload_floats(device, stream, inv_freq.data(), {static_cast<std::int64_t>(inv_freq.size())})};
}

/// Constants for a model without weights, which only counts.
Constants planned_constants(const Config& c) {
  return {blocks::tensor_without_memory(DType::kF32, {3, 256}),
          blocks::tensor_without_memory(DType::kF32, {c.head_dim() / 4})};
}

class Model final : public EncoderGraphModel {
 public:
  Model(Config config, PreprocessConfig preprocess, Weights weights, Constants constants)
      : config_(std::move(config)),
        preprocess_(preprocess),
        weights_(std::move(weights)),
        constants_(std::move(constants)) {
    spec_.modalities = {Modality::kImage, Modality::kVideo};
    spec_.out_width = config_.out_width();
    spec_.max_frames_per_video = kMaxFramesPerVideo;
    // Per row a block multiplies 4 h^2 + 2 h i times in its products and, per key, 2 h times in its
    // attention.
    spec_.attention_parity_rows = 2 * config_.hidden_size + config_.intermediate_size;
  }

  [[nodiscard]] const GraphSpec& graph_spec() const noexcept override { return spec_; }

  [[nodiscard]] BudgetRange budget_range(std::int64_t max_tokens) const override {
    return {std::min(kMinBudget, max_tokens), max_tokens};
  }

  [[nodiscard]] ItemPlan plan_image(std::int64_t width_px, std::int64_t height_px) const override {
    return qwen3_vl::plan_image(config_, preprocess_, width_px, height_px);
  }

  [[nodiscard]] ItemPlan plan_video(std::int64_t num_frames, std::int64_t width_px,
                                    std::int64_t height_px) const override {
    return qwen3_vl::plan_video(config_, preprocess_, num_frames, width_px, height_px);
  }

  [[nodiscard]] std::vector<std::int64_t> sample_frames(std::int64_t total_frames, double video_fps,
                                                        double target_fps) const override {
    return qwen3_vl::sample_frames(preprocess_, total_frames, video_fps, target_fps);
  }

  void fill_pixels(const ItemPlan& plan, std::span<const RgbView> frames,
                   std::span<std::uint8_t> out) const override {
    qwen3_vl::fill_pixels(preprocess_, plan, frames, out);
  }

  [[nodiscard]] ItemPlan plan_grid(Modality modality,
                                   const std::array<std::int64_t, 3>& grid) const override {
    return qwen3_vl::plan_grid(config_, modality, grid);
  }

  void fill_pixel_values(const ItemPlan& plan, const ConstTensorView& values,
                         std::span<std::uint8_t> out) const override {
    qwen3_vl::fill_pixel_values(config_, preprocess_, plan, values, out);
  }

  [[nodiscard]] std::int64_t path_width(PathId) const override { return config_.out_width(); }

  [[nodiscard]] std::vector<BufferDecl> inputs(PathId,
                                               const GraphCapacity& capacity) const override {
    const std::int64_t patches = capacity.tokens * config_.merge_area();
    // Bytes of a patch row when no frame is repeated; pictures need half of it.
    const std::int64_t row_bytes = config_.patch_dim();
    return {{"live", DType::kI32, {kNumLive}},
            {"cu_seqlens", DType::kI32, {capacity.seqs + 1}, PadRule::kRepeatLast},
            {"positions", DType::kI32, {patches, 4}},
            {"sources", DType::kI32, {patches, 4}},
            {"pixels", DType::kU8, {patches * row_bytes}}};
  }

  void fill_inputs(PathId, const GraphCapacity&, std::span<const PreparedItem* const> items,
                   InputWriter& writer) const override {
    std::int64_t patches = 0;
    std::int64_t seqs = 0;
    std::int64_t bytes = 0;
    for (const PreparedItem* item : items) {
      patches += item->plan.spec.input_rows;
      seqs += item->plan.spec.num_seqs;
      bytes += static_cast<std::int64_t>(item->plan.pixel_bytes);
    }
    blocks::check_pixel_offsets(bytes, items.size());
    const TensorView positions = writer.claim("positions", patches);
    const TensorView sources = writer.claim("sources", patches);
    const TensorView pixels = writer.claim("pixels", bytes);
    auto* cu_seqlens = writer.claim("cu_seqlens", seqs + 1).as<std::int32_t>();
    auto* live = writer.claim("live", kNumLive).as<std::int32_t>();
    live[kPatches] = static_cast<std::int32_t>(patches);
    live[kTokens] = static_cast<std::int32_t>(patches / config_.merge_area());
    live[kSeqs] = static_cast<std::int32_t>(seqs);

    std::size_t row = 0;
    std::size_t byte = 0;
    *cu_seqlens = 0;
    for (const PreparedItem* item : items) {
      const ItemPlan& plan = item->plan;
      const auto rows = static_cast<std::size_t>(plan.spec.input_rows);
      write_patch_rows(config_, plan, static_cast<std::int64_t>(byte),
                       {positions.as<std::int32_t>() + 4 * row, 4 * rows},
                       {sources.as<std::int32_t>() + 4 * row, 4 * rows});
      writer.copy(pixels.data + byte, item->pixels);
      for (std::int64_t frame = 0; frame < plan.grid[0]; ++frame, ++cu_seqlens) {
        cu_seqlens[1] = cu_seqlens[0] + static_cast<std::int32_t>(plan.grid[1] * plan.grid[2]);
      }
      row += rows;
      byte += plan.pixel_bytes;
    }
  }

  void forward(ExecContext& ctx, PathId, const GraphCapacity&, const NamedTensors& in,
               TensorView out) const override {
    const auto* live = in["live"].as<std::int32_t>();
    qwen3_vl::forward(ctx, config_, weights_, constants_,
                      {.pixels = in["pixels"],
                       .sources = in["sources"],
                       .positions = in["positions"],
                       .cu_seqlens = in["cu_seqlens"],
                       .patches = {live + kPatches},
                       .tokens = {live + kTokens},
                       .seqs = {live + kSeqs}},
                      out);
  }

 private:
  Config config_;
  PreprocessConfig preprocess_;
  Weights weights_;
  Constants constants_;
  GraphSpec spec_;
};

std::unique_ptr<EncoderGraphModel> make_planner(const checkpoint::HfConfig& files,
                                                const MediaOptions& media) {
  const Config config = parse_config(files);
  const auto dummy = checkpoint::WeightSource::dummy(0);
  blocks::WeightLoader shapes(dummy, weight_prefix(dummy));
  return std::make_unique<Model>(config, parse_preprocess_config(files, config, media),
                                 load_weights(shapes, config), planned_constants(config));
}

std::unique_ptr<EncoderGraphModel> load(const checkpoint::HfConfig& files,
                                        const MediaOptions& media,
                                        const checkpoint::WeightSource& source, Device& device,
                                        Stream& stream) {
  const Config config = parse_config(files);
  const PreprocessConfig preprocess = parse_preprocess_config(files, config, media);
  const std::string prefix = weight_prefix(source);
  blocks::WeightLoader checker(source, prefix);
  (void)load_weights(checker, config);
  checker.throw_if_incomplete();
  blocks::WeightLoader loader(source, prefix, device, stream);
  return std::make_unique<Model>(config, preprocess, load_weights(loader, config),
                                 make_constants(device, stream, config, preprocess));
}

ModelReport describe(const checkpoint::HfConfig& files, const checkpoint::WeightSource& source) {
  const Config c = parse_config(files);
  const PreprocessConfig p = parse_preprocess_config(files, c, MediaOptions{});
  blocks::WeightLoader checker(source, weight_prefix(source));
  (void)load_weights(checker, c);
  ModelReport report;
  report.architecture = files.architecture();
  report.family = family().name;
  report.hidden = c.out_hidden_size;
  report.deepstack_levels = c.num_deepstack();
  report.width = c.out_width();
  report.tensors = checker.report();
  report.parameters = checker.parameters();
  const auto fact = [&](const char* name, const auto& value) {
    report.facts.emplace_back(name, cat(value));
  };
  fact("depth", c.depth);
  fact("hidden_size", c.hidden_size);
  fact("intermediate_size", c.intermediate_size);
  fact("num_heads", c.num_heads);
  fact("patch_size", c.patch_size);
  fact("spatial_merge_size", c.spatial_merge_size);
  fact("temporal_patch_size", c.temporal_patch_size);
  fact("num_position_embeddings", c.num_position_embeddings);
  fact("image pixels", cat(p.image.min_pixels, "..", p.image.max_pixels));
  fact("video pixels", cat(p.video.min_pixels, "..", p.video.max_pixels));
  return report;
}

}  // namespace

const ModelFamily& family() noexcept {
  static constexpr ModelFamily kFamily{"qwen3_vl", kArchitectures, &make_planner,
                                       &load,      &describe,      &assumptions};
  return kFamily;
}

}  // namespace fovea::qwen3_vl
