// config.json of Kimi-K2.5.
#include "models/kimi_k25/config.h"

#include <string_view>

#include "core/check.h"
#include "models/common/config_reader.h"
#include "models/common/processor_file.h"

namespace fovea::kimi_k25 {

namespace {

constexpr std::int64_t kChunkFrames = 4;  // of published checkpoints
constexpr std::int64_t kMaxChunkFrames = 64;

/// A size under the name of published checkpoints, or under that which transformers writes.
std::int64_t read_either(const JsonView& object, std::string_view published,
                         std::string_view written, std::int64_t fallback,
                         std::int64_t most = common::kMaxSize) {
  return common::read_size(object, published, common::read_size(object, written, fallback, most),
                           most);
}

/// Requires the only values of keys that could ask for another tower.
void check_kinds(const JsonView& vision) {
  common::require_text(vision, "pos_emb_type", "divided_fixed");
  common::require_text(vision, "video_attn_type", "spatial_temporal");
  common::require_text(vision, "merge_type", "sd2_tpool");
  common::require_text(vision, "mm_projector_type", "patchmerger");
}

void read_projector(const JsonView& root, const JsonView& vision, Config& c) {
  const std::int64_t width = common::read_size(
      vision, "mm_hidden_size", common::read_size(root, "projection_hidden_size", c.hidden_size));
  FOVEA_CHECK(width == c.hidden_size, kUnsupported, vision.path(), ".mm_hidden_size: only ",
              c.hidden_size, ", the width of the tower, is supported, got ", width);
  c.projector_ln_eps = common::read_positive(
      vision, "projector_ln_eps",
      common::read_positive(root, "projection_layer_norm_eps", c.projector_ln_eps));
  c.projector_hidden_act = common::parse_activation(
      vision.string_or("projector_hidden_act", "gelu"), vision.path() + ".projector_hidden_act");
  c.text_hidden_size = common::read_size(vision, "text_hidden_size", c.text_hidden_size);
  if (const auto text = root.find("text_config")) {
    c.text_hidden_size = common::read_size(*text, "hidden_size", c.text_hidden_size);
  }
}

/// Frames of a chunk, in the processor file of the vendor or in that of transformers.
std::int64_t read_chunk_frames(const checkpoint::HfConfig& files, std::int64_t most) {
  const auto file = files.video_processor();
  if (!file) return most;
  const auto vendor = file->find("media_proc_cfg");
  const JsonView& keys = vendor ? *vendor : *file;
  const char* const key = vendor ? "temporal_merge_kernel_size" : "temporal_patch_size";
  const std::int64_t frames = common::read_size(keys, key, most);
  FOVEA_CHECK(frames <= most, kUnsupported, keys.path(), ".", key, ": ", frames,
              " frames make a chunk, config.json has positions for ", most);
  return frames;
}

}  // namespace

Config parse_config(const checkpoint::HfConfig& files) {
  const JsonView root = files.config.root();
  const JsonView vision = root.at("vision_config");
  check_kinds(vision);
  Config c{.text_hidden_size = 7168};
  c.hidden_size = read_either(vision, "vt_hidden_size", "hidden_size", c.hidden_size);
  c.num_hidden_layers = read_either(vision, "vt_num_hidden_layers", "num_hidden_layers",
                                    c.num_hidden_layers, common::kMaxDepth);
  c.num_attention_heads =
      read_either(vision, "vt_num_attention_heads", "num_attention_heads", c.num_attention_heads);
  c.intermediate_size =
      read_either(vision, "vt_intermediate_size", "intermediate_size", c.intermediate_size);
  common::check_heads(vision, c.hidden_size, c.num_attention_heads);
  c.init_pos_emb_height =
      read_either(vision, "init_pos_emb_height", "pos_emb_height", c.init_pos_emb_height);
  c.init_pos_emb_width =
      read_either(vision, "init_pos_emb_width", "pos_emb_width", c.init_pos_emb_width);
  c.init_pos_emb_time =
      read_either(vision, "init_pos_emb_time", "pos_emb_time", kChunkFrames, kMaxChunkFrames);
  c.rope_theta = common::read_rope_theta(vision, c.rope_theta);
  c.hidden_act = common::parse_activation(vision.string_or("hidden_act", "gelu_pytorch_tanh"),
                                          vision.path() + ".hidden_act");
  c.grid.spatial_merge_size =
      common::read_square(vision, "merge_kernel_size", c.grid.spatial_merge_size);
  c.grid = common::read_grid_geometry(vision, c.grid);
  c.grid.temporal_patch_size = read_chunk_frames(files, c.init_pos_emb_time);
  c.grid.frames = common::FrameUse::kTogether;
  read_projector(root, vision, c);
  return c;
}

}  // namespace fovea::kimi_k25
