// config.json and processor_config.json of DeepSeek-OCR.
#include "models/deepseek_ocr/config.h"

#include <algorithm>
#include <string>

#include "core/check.h"

namespace fovea::deepseek_ocr {

namespace {

constexpr std::int64_t kMaxSize = 1 << 20;  // of any width or count: keeps products in 63 bits

std::int64_t size(const JsonView& object, std::string_view key, std::int64_t fallback) {
  const std::int64_t value = object.int_or(key, fallback);
  FOVEA_CHECK(value >= 1 && value <= kMaxSize, kCorruptData, object.path(), ".", key,
              ": expected a number in [1, ", kMaxSize, "], got ", value);
  return value;
}

void read_sam(const JsonView& sam, Config& c) {
  c.sam_width = size(sam, "width", c.sam_width);
  c.sam_heads = size(sam, "heads", c.sam_heads);
  c.sam_layers = size(sam, "layers", c.sam_layers);
  if (const auto list = sam.find("global_attn_indexes")) {
    c.global_attn_indexes.clear();
    for (const JsonView& entry : list->elements()) c.global_attn_indexes.push_back(entry.as_int());
  }
  if (const auto list = sam.find("downsample_channels")) {
    const std::vector<JsonView> channels = list->elements();
    FOVEA_CHECK(channels.size() == 2, kCorruptData, list->path(), ": expected 2 numbers, got ",
                channels.size());
    for (std::size_t i = 0; i < 2; ++i) c.downsample_channels[i] = channels[i].as_int();
  }
}

void read_clip(const JsonView& clip, Config& c) {
  c.clip_width = size(clip, "width", c.clip_width);
  c.clip_heads = size(clip, "heads", c.clip_heads);
  c.clip_layers = size(clip, "layers", c.clip_layers);
}

void check_consistent(const JsonView& root, const Config& c) {
  FOVEA_CHECK(c.sam_width % c.sam_heads == 0 && c.sam_head_dim() % 8 == 0 &&
                  c.clip_width % c.clip_heads == 0 && c.clip_head_dim() % 8 == 0,
              kUnsupported, root.path(), ": head sizes must be multiples of 8, got ", c.sam_width,
              " / ", c.sam_heads, " and ", c.clip_width, " / ", c.clip_heads);
  FOVEA_CHECK(c.feature_width() == c.clip_width, kCorruptData, root.path(), ": SAM features have ",
              c.feature_width(), " channels, CLIP takes ", c.clip_width);
  FOVEA_CHECK(c.projector_input_dim == c.clip_width + c.feature_width(), kCorruptData, root.path(),
              ".projector_config.input_dim: expected ", c.clip_width + c.feature_width(), ", got ",
              c.projector_input_dim);
  for (const std::int64_t index : c.global_attn_indexes) {
    FOVEA_CHECK(index >= 0 && index < c.sam_layers, kCorruptData, root.path(),
                ": global_attn_indexes: expected block indexes below ", c.sam_layers, ", got ",
                index);
  }
}

}  // namespace

bool Config::is_global_block(std::int64_t layer) const {
  return std::ranges::find(global_attn_indexes, layer) != global_attn_indexes.end();
}

Config parse_config(const checkpoint::HfConfig& files) {
  const JsonView root = files.config.root();
  const std::string tile_tag = root.string_or("tile_tag", "2D");
  FOVEA_CHECK(tile_tag == "2D", kUnsupported, root.path(), ".tile_tag: only 2D is supported, got ",
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
  c.max_position_embeddings = size(root, "max_position_embeddings", c.max_position_embeddings);
  check_consistent(root, c);
  return c;
}

PreprocessConfig parse_preprocess_config(const checkpoint::HfConfig& files,
                                         const MediaOptions& media) {
  PreprocessConfig p;
  if (files.processor) {
    const auto read = [&](std::string_view key, std::array<float, 3>& values) {
      const auto list = files.processor->root().find(key);
      if (!list) return;
      const std::vector<JsonView> entries = list->elements();
      FOVEA_CHECK(entries.size() == 3, kCorruptData, list->path(), ": expected 3 numbers, got ",
                  entries.size());
      for (std::size_t i = 0; i < 3; ++i) values[i] = static_cast<float>(entries[i].as_number());
    };
    read("image_mean", p.image_mean);
    read("image_std", p.image_std);
  }
  if (media.image_backend == ImageBackend::kTorchvision) {
    p.engine = media::ResizeEngine::kTorchvision;
  }
  return p;
}

}  // namespace fovea::deepseek_ocr
