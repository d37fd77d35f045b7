// config.json and the processor files of Qwen3-VL and Qwen3.5.
// Source: Qwen and GLM specification, sections 1.1 and 3.1.
#include "models/qwen3_vl/config.h"

#include <cmath>
#include <optional>
#include <string>

#include "core/check.h"
#include "models/blocks/activation.h"
#include "models/blocks/processor_file.h"

namespace fovea::qwen3_vl {

namespace {

/// Largest sizes that are taken from a file: far above every published tower, and low enough for
/// products of sizes to stay below 63 bits.
constexpr std::int64_t kMaxSize = std::int64_t{1} << 20;
constexpr std::int64_t kMaxDepth = 1024;
constexpr std::int64_t kMaxResizeFactor = std::int64_t{1} << 12;
constexpr std::int64_t kMaxPixels = std::int64_t{1} << 40;

/// An integer that some files write as a list of one or two equal numbers.
std::int64_t int_or_first(const JsonView& object, std::string_view key, std::int64_t fallback) {
  const auto value = object.find(key);
  if (!value) return fallback;
  if (!value->is_array()) return value->as_int();
  const std::vector<JsonView> list = value->elements();
  FOVEA_CHECK(!list.empty(), kCorruptData, value->path(), ": expected a number, got an empty list");
  return list.front().as_int();
}

std::int64_t positive(const JsonView& object, std::string_view key, std::int64_t value) {
  FOVEA_CHECK(value > 0 && value <= kMaxSize, kCorruptData, object.path(), ".", key,
              ": expected a positive number up to ", kMaxSize, ", got ", value);
  return value;
}

std::vector<std::int64_t> deepstack_indexes(const JsonView& vision, bool is_qwen3_5,
                                            std::int64_t depth) {
  const auto list = vision.find("deepstack_visual_indexes");
  if (!list) return is_qwen3_5 ? std::vector<std::int64_t>{} : std::vector<std::int64_t>{8, 16, 24};
  std::vector<std::int64_t> indexes;
  for (const JsonView& entry : list->elements()) {
    indexes.push_back(entry.as_int());
    FOVEA_CHECK(indexes.back() >= 0 && indexes.back() < depth, kCorruptData, entry.path(),
                ": expected a block index below depth ", depth, ", got ", indexes.back());
  }
  return indexes;
}

void check_consistent(const JsonView& vision, const Config& c) {
  FOVEA_CHECK(c.in_channels == 3, kUnsupported, vision.path(),
              ".in_channels: only RGB (3) is supported, got ", c.in_channels);
  FOVEA_CHECK(c.temporal_patch_size == 2, kUnsupported, vision.path(),
              ".temporal_patch_size: only 2 is supported, got ", c.temporal_patch_size);
  FOVEA_CHECK(c.depth <= kMaxDepth, kCorruptData, vision.path(), ".depth: expected at most ",
              kMaxDepth, " blocks, got ", c.depth);
  FOVEA_CHECK(c.patch_size * c.spatial_merge_size <= kMaxResizeFactor, kCorruptData, vision.path(),
              ": patch_size ", c.patch_size, " times spatial_merge_size ", c.spatial_merge_size,
              " is above ", kMaxResizeFactor);
  FOVEA_CHECK(c.hidden_size % c.num_heads == 0, kCorruptData, vision.path(), ": num_heads ",
              c.num_heads, " does not divide hidden_size ", c.hidden_size);
  // Rotary pairs split a head into row and column quarters; kernels work on whole vectors of 8.
  FOVEA_CHECK(c.head_dim() % 8 == 0, kUnsupported, vision.path(), ": head size ", c.head_dim(),
              " (hidden_size / num_heads) is not a multiple of 8");
  FOVEA_CHECK(c.position_side() * c.position_side() == c.num_position_embeddings, kCorruptData,
              vision.path(), ".num_position_embeddings: ", c.num_position_embeddings,
              " is not a square");
}

bool is_valid(blocks::PixelRange range) {
  return range.min_pixels > 0 && range.min_pixels <= range.max_pixels &&
         range.max_pixels <= kMaxPixels;
}

/// Other families give sides here, which would be ignored.
void check_has_edges(const JsonView& size) {
  const bool edges = size.find("shortest_edge") || size.find("longest_edge") ||
                     size.find("min_pixels") || size.find("max_pixels");
  FOVEA_CHECK(edges, kCorruptData, size.path(), ": expected shortest_edge and longest_edge");
}

/// size.shortest_edge / longest_edge, older size.min_pixels / max_pixels, and the top-level
/// min_pixels / max_pixels, which override.
blocks::PixelRange pixel_range(const JsonView& processor, blocks::PixelRange range) {
  if (const auto size = processor.find("size")) {
    check_has_edges(*size);
    range.min_pixels = size->int_or("shortest_edge", size->int_or("min_pixels", range.min_pixels));
    range.max_pixels = size->int_or("longest_edge", size->int_or("max_pixels", range.max_pixels));
  }
  range.min_pixels = processor.int_or("min_pixels", range.min_pixels);
  range.max_pixels = processor.int_or("max_pixels", range.max_pixels);
  FOVEA_CHECK(is_valid(range), kCorruptData, processor.path(),
              ": expected 0 < min_pixels <= max_pixels <= ", kMaxPixels, ", got ", range.min_pixels,
              " and ", range.max_pixels);
  return range;
}

void check_same(const JsonView& processor, std::string_view key, std::int64_t expected) {
  const std::int64_t value = int_or_first(processor, key, expected);
  FOVEA_CHECK(value == expected, kCorruptData, processor.path(), ".", key, ": ", value,
              " contradicts config.json, which says ", expected);
}

void check_steps(const JsonView& processor, const Config& config) {
  check_same(processor, "patch_size", config.patch_size);
  check_same(processor, "temporal_patch_size", config.temporal_patch_size);
  check_same(processor, "merge_size", config.spatial_merge_size);
  for (const char* key : {"do_resize", "do_rescale", "do_normalize"}) {
    FOVEA_CHECK(processor.bool_or(key, true), kUnsupported, processor.path(), ".", key,
                ": false is not supported");
  }
}

/// Pillow's numbers of the filters, as `resample` stores them.
media::ResizeFilter resample_filter(const JsonView& processor) {
  switch (const std::int64_t number = processor.int_or("resample", 3); number) {
    case 2: return media::ResizeFilter::kBilinear;
    case 3: return media::ResizeFilter::kBicubic;
    default:
      FOVEA_CHECK(false, kUnsupported, processor.path(),
                  ".resample: 2 (bilinear) and 3 (bicubic) are supported, got ", number);
  }
}

bool has(const std::optional<JsonView>& processor, std::string_view key) {
  return processor && processor->find(key);
}

bool has_size(const std::optional<JsonView>& processor) {
  return has(processor, "size") || (has(processor, "min_pixels") && has(processor, "max_pixels"));
}

std::string pixels_text(const char* name, blocks::PixelRange range) {
  return cat(name, "=", range.min_pixels, "..", range.max_pixels);
}

}  // namespace

std::int64_t Config::position_side() const {
  return static_cast<std::int64_t>(std::sqrt(static_cast<double>(num_position_embeddings)));
}

media::NormalizeTable normalize_table(const PreprocessConfig& preprocess) {
  return media::fused_normalize_table(preprocess.image_mean, preprocess.image_std,
                                      preprocess.rescale_factor);
}

Config parse_config(const checkpoint::HfConfig& files) {
  const JsonView vision = files.config.root().at("vision_config");
  const bool is_qwen3_5 = files.architecture().starts_with("Qwen3_5");
  Config c;
  const auto read = [&](std::string_view key, std::int64_t& field) {
    field = positive(vision, key, int_or_first(vision, key, field));
  };
  read("depth", c.depth);
  read("hidden_size", c.hidden_size);
  read("intermediate_size", c.intermediate_size);
  read("num_heads", c.num_heads);
  read("in_chans", c.in_channels);
  read("in_channels", c.in_channels);
  read("spatial_patch_size", c.patch_size);
  read("patch_size", c.patch_size);
  read("spatial_merge_size", c.spatial_merge_size);
  read("temporal_patch_size", c.temporal_patch_size);
  read("out_hidden_size", c.out_hidden_size);
  read("num_position_embeddings", c.num_position_embeddings);
  c.deepstack_visual_indexes = deepstack_indexes(vision, is_qwen3_5, c.depth);
  if (const auto rope = vision.find("rope_parameters")) {
    c.rope_theta = rope->number_or("rope_theta", c.rope_theta);
  }
  c.hidden_act = blocks::parse_activation(vision.string_or("hidden_act", "gelu_pytorch_tanh"),
                                          vision.path() + ".hidden_act");
  check_consistent(vision, c);
  return c;
}

PreprocessConfig parse_preprocess_config(const checkpoint::HfConfig& files, const Config& config,
                                         const MediaOptions& media) {
  PreprocessConfig p;
  if (const auto image = files.image_processor()) {
    check_steps(*image, config);
    p.image = pixel_range(*image, p.image);
    p.image_mean = blocks::read_channels(*image, "image_mean", p.image_mean);
    p.image_std = blocks::read_positive_channels(*image, "image_std", p.image_std);
    p.rescale_factor = blocks::read_positive(*image, "rescale_factor", p.rescale_factor);
    p.filter = resample_filter(*image);
  }
  if (const auto video = files.video_processor()) {
    check_steps(*video, config);
    p.video = pixel_range(*video, p.video);
    p.cap_pixels_per_frame = video->bool_or("cap_pixels_per_frame", false);
    p.min_frames = positive(*video, "min_frames", video->int_or("min_frames", p.min_frames));
    p.max_frames = positive(*video, "max_frames", video->int_or("max_frames", p.max_frames));
    p.max_video_tokens =
        positive(*video, "max_video_tokens", video->int_or("max_video_tokens", p.max_video_tokens));
  }
  if (media.min_pixels) p.image.min_pixels = *media.min_pixels;
  if (media.max_pixels) p.image.max_pixels = *media.max_pixels;
  FOVEA_CHECK(is_valid(p.image), kInvalidArgument,
              "expected 0 < min_pixels <= max_pixels <= ", kMaxPixels, ", got ", p.image.min_pixels,
              media.min_pixels ? "" : " (the checkpoint's)", " and ", p.image.max_pixels,
              media.max_pixels ? "" : " (the checkpoint's)");
  if (media.image_backend == ImageBackend::kPillow) p.engine = media::ResizeEngine::kPillow;
  return p;
}

std::string assumptions(const checkpoint::HfConfig& files, const MediaOptions& media) {
  const auto image = files.image_processor();
  const auto video = files.video_processor();
  const PreprocessConfig p = parse_preprocess_config(files, parse_config(files), media);
  const auto path_of = [&](const std::optional<JsonView>& processor, const char* name) {
    return processor ? processor->path() : files.directory + name;
  };
  const std::string image_file = path_of(image, "/preprocessor_config.json");
  const std::string video_file =
      path_of(video, image ? "/video_preprocessor_config.json" : "/preprocessor_config.json");
  std::string text =
      blocks::missing_text(image_file, image.has_value(),
                           {{has_size(image), "size", pixels_text("image_pixels", p.image)},
                            {has(image, "image_mean"), "image_mean",
                             cat("image_mean=", blocks::channel_text(p.image_mean))},
                            {has(image, "image_std"), "image_std",
                             cat("image_std=", blocks::channel_text(p.image_std))}});
  if (has_size(video)) return text;
  const std::string video_pixels = pixels_text("video_pixels", p.video);
  if (!text.empty() && video_file == image_file) return cat(text, " ", video_pixels);
  return cat(text, text.empty() ? "" : " ",
             blocks::missing_text(video_file, video.has_value(), {{false, "size", video_pixels}}));
}

}  // namespace fovea::qwen3_vl
