// config.json and processor_config.json of DeepSeek-OCR.
#include "models/deepseek_ocr/config.h"

#include <algorithm>
#include <string>

#include "core/check.h"
#include "models/blocks/processor_file.h"

namespace fovea::deepseek_ocr {

namespace {

/// Largest sizes that are taken from a file: far above the published towers, and low enough for
/// products of sizes to stay below 63 bits.
constexpr std::int64_t kMaxSize = std::int64_t{1} << 20;
constexpr std::int64_t kMaxLayers = 1024;

std::int64_t within(const JsonView& value, std::int64_t most) {
  const std::int64_t number = value.as_int();
  FOVEA_CHECK(number >= 1 && number <= most, kCorruptData, value.path(),
              ": expected a number in [1, ", most, "], got ", number);
  return number;
}

std::int64_t size(const JsonView& object, std::string_view key, std::int64_t fallback,
                  std::int64_t most = kMaxSize) {
  const auto value = object.find(key);
  return value ? within(*value, most) : fallback;
}

std::vector<std::int64_t> block_indexes(const JsonView& list, std::int64_t layers) {
  const std::vector<JsonView> entries = list.elements();
  FOVEA_CHECK(static_cast<std::int64_t>(entries.size()) <= layers, kCorruptData, list.path(),
              ": expected at most ", layers, " block indexes, got ", entries.size());
  std::vector<std::int64_t> indexes;
  for (const JsonView& entry : entries) {
    indexes.push_back(entry.as_int());
    FOVEA_CHECK(indexes.back() >= 0 && indexes.back() < layers, kCorruptData, entry.path(),
                ": expected a block index below ", layers, ", got ", indexes.back());
  }
  return indexes;
}

void read_sam(const JsonView& sam, Config& c) {
  c.sam_width = size(sam, "width", c.sam_width);
  c.sam_heads = size(sam, "heads", c.sam_heads);
  c.sam_layers = size(sam, "layers", c.sam_layers, kMaxLayers);
  if (const auto list = sam.find("global_attn_indexes")) {
    c.global_attn_indexes = block_indexes(*list, c.sam_layers);
  }
  if (const auto list = sam.find("downsample_channels")) {
    const std::vector<JsonView> channels = list->elements();
    FOVEA_CHECK(channels.size() == 2, kCorruptData, list->path(), ": expected 2 numbers, got ",
                channels.size());
    for (std::size_t i = 0; i < 2; ++i) c.downsample_channels[i] = within(channels[i], kMaxSize);
  }
}

void read_clip(const JsonView& clip, Config& c) {
  c.clip_width = size(clip, "width", c.clip_width);
  c.clip_heads = size(clip, "heads", c.clip_heads);
  c.clip_layers = size(clip, "layers", c.clip_layers, kMaxLayers);
}

/// Of the language model; the top level repeats most of language_config.
std::int64_t max_position_embeddings(const JsonView& root, std::int64_t fallback) {
  constexpr const char* kKey = "max_position_embeddings";
  const std::int64_t repeated = size(root, kKey, fallback);
  const auto language = root.find("language_config");
  return language ? size(*language, kKey, repeated) : repeated;
}

void check_consistent(const JsonView& root, const Config& c) {
  FOVEA_CHECK(c.sam_width % c.sam_heads == 0 && c.sam_head_dim() % 8 == 0 &&
                  c.clip_width % c.clip_heads == 0 && c.clip_head_dim() % 8 == 0,
              kUnsupported, root.path(), ": head sizes must be multiples of 8, got ", c.sam_width,
              " / ", c.sam_heads, " and ", c.clip_width, " / ", c.clip_heads);
  FOVEA_CHECK(c.feature_width() == c.clip_width, kCorruptData, root.path(), ": SAM features have ",
              c.feature_width(), " channels, CLIP takes ", c.clip_width);
  FOVEA_CHECK(c.projector_input_dim == c.clip_width + c.feature_width(), kCorruptData, root.path(),
              ": projector_config.input_dim: expected ", c.clip_width + c.feature_width(), ", got ",
              c.projector_input_dim);
}

}  // namespace

bool Config::is_global_block(std::int64_t layer) const {
  return std::ranges::find(global_attn_indexes, layer) != global_attn_indexes.end();
}

Config parse_config(const checkpoint::HfConfig& files) {
  const JsonView root = files.config.root();
  const std::string tile_tag = root.string_or("tile_tag", "2D");
  FOVEA_CHECK(tile_tag == "2D", kUnsupported, root.path(), ": tile_tag: only 2D is supported, got ",
              tile_tag);
  Config c;
  const JsonView width = root.at("vision_config").at("width");
  read_sam(width.at("sam_vit_b"), c);
  read_clip(width.at("clip-l-14-224"), c);
  const JsonView projector = root.at("projector_config");
  const std::string type = projector.string_or("projector_type", "linear");
  FOVEA_CHECK(type == "linear", kUnsupported, projector.path(),
              ".projector_type: only linear is supported, got ", type);
  c.projector_input_dim = size(projector, "input_dim", c.projector_input_dim);
  c.n_embed = size(projector, "n_embed", c.n_embed);
  c.max_position_embeddings = max_position_embeddings(root, c.max_position_embeddings);
  check_consistent(root, c);
  return c;
}

PreprocessConfig parse_preprocess_config(const checkpoint::HfConfig& files,
                                         const MediaOptions& media) {
  PreprocessConfig p;
  if (files.processor) {
    const JsonView processor = files.processor->root();
    p.image_mean = blocks::read_channels(processor, "image_mean", p.image_mean);
    p.image_std = blocks::read_positive_channels(processor, "image_std", p.image_std);
  }
  if (media.image_backend == ImageBackend::kTorchvision) {
    p.engine = media::ResizeEngine::kTorchvision;
  }
  return p;
}

std::string assumptions(const checkpoint::HfConfig& files, const MediaOptions& media) {
  const PreprocessConfig p = parse_preprocess_config(files, media);
  const auto has = [&](const char* key) {
    return files.processor && files.processor->root().find(key);
  };
  return blocks::missing_text(
      files.directory + "/processor_config.json", files.processor.has_value(),
      {{has("image_mean"), "image_mean", cat("image_mean=", blocks::channel_text(p.image_mean))},
       {has("image_std"), "image_std", cat("image_std=", blocks::channel_text(p.image_std))}});
}

}  // namespace fovea::deepseek_ocr
