// config.json of Qwen3-VL and of all that have its tower.
#include "models/qwen3_vl/config.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <string_view>

#include "core/check.h"
#include "models/common/config_reader.h"
#include "models/registry.h"

namespace fovea::qwen3_vl {

namespace {

/// Whether the configuration class of an architecture has no levels unless a file lists them.
bool assumes_no_levels(std::string_view architecture) {
  constexpr std::array<std::string_view, 7> kNone{
      "Qwen3_5", "Qwen4Exp", "InternS1Pro", "InternS2", "ColQwen3_5", "ClefFlash", "D3For"};
  return std::ranges::any_of(kNone, [&](auto name) { return architecture.starts_with(name); });
}

/// The blocks whose rows are levels of their own; where the key is absent, what the reference's
/// configuration class of the architecture assumes.
std::vector<std::int64_t> read_deepstack(const JsonView& vision, std::int64_t depth,
                                         std::string_view architecture) {
  constexpr const char* kKey = "deepstack_visual_indexes";
  if (const auto levels = vision.find(kKey)) return common::read_block_indexes(*levels, depth);
  if (assumes_no_levels(architecture)) return {};
  std::vector<std::int64_t> assumed{8, 16, 24};
  FOVEA_CHECK(assumed.back() < depth, kCorruptData, vision.path(), ".", kKey,
              ": absent, and the default 8, 16, 24 needs more than ", depth, " blocks");
  return assumed;
}

/// As Config::has_frame_limits: by the class that the file of videos names, else by the one that
/// belongs to the architecture.
bool read_frame_limits(const checkpoint::HfConfig& files, bool assumed) {
  const auto video = files.video_processor();
  const auto type = video ? video->find("video_processor_type") : std::nullopt;
  return type ? type->as_string().starts_with("Qwen2VL") : assumed;
}

}  // namespace

std::int64_t Config::position_side() const {
  return static_cast<std::int64_t>(std::sqrt(static_cast<double>(num_position_embeddings)));
}

Config parse_config(const checkpoint::HfConfig& files) {
  const JsonView vision = common::vision_config(files.config.root());
  const std::string_view architecture = known_architecture(files);
  const bool is_omni =
      architecture.starts_with("Qwen3Omni") || architecture.starts_with("ClefOmni");
  Config c;
  const auto read = [&](std::string_view key, std::int64_t& field) {
    field = common::read_size(vision, key, field);
  };
  common::read_depth_and_heads(vision, c);
  read("hidden_size", c.hidden_size);
  read("intermediate_size", c.intermediate_size);
  read("out_hidden_size", c.out_hidden_size);
  read("num_position_embeddings", c.num_position_embeddings);
  c.grid = common::read_grid_geometry(vision, c.grid);
  c.deepstack_visual_indexes = read_deepstack(vision, c.depth, architecture);
  c.rope_theta = common::read_rope_theta(vision, c.rope_theta);
  c.hidden_act = common::parse_activation(vision.string_or("hidden_act", "gelu_pytorch_tanh"),
                                          vision.path() + ".hidden_act");
  common::check_heads(vision, c.hidden_size, c.num_heads);
  if (is_omni) c.mergers = {"merger_list.", ".ln_q", ".mlp.0", ".mlp.2"};
  c.has_frame_limits = read_frame_limits(files, is_omni);
  return c;
}

}  // namespace fovea::qwen3_vl
