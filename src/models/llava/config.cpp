// config.json of the three formats of LLaVA.
#include "models/llava/config.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <string>

#include "core/check.h"
#include "models/common/config_reader.h"
#include "models/common/views/clip.h"

namespace fovea::llava {

namespace {

/// The number of blocks whose last one the projector reads. hidden_states of the reference has what
/// enters the first block at 0; negative numbers count from the end.
std::int64_t blocks_that_run(const JsonView& root, std::int64_t fallback, std::int64_t stored) {
  constexpr const char* kKey = "vision_feature_layer";
  std::int64_t layer = fallback;
  if (const auto value = root.find(kKey)) {
    FOVEA_CHECK(!value->is_array() || value->num_elements() == 1, kUnsupported, root.path(), ": ",
                kKey, ": only one layer is supported, got a list of ", value->num_elements());
    layer = value->is_array() ? value->elements().front().as_int() : value->as_int();
  }
  FOVEA_CHECK(layer != 0 && layer >= -stored && layer <= stored, kUnsupported, root.path(), ": ",
              kKey, ": expected a number in [-", stored, ", -1] or [1, ", stored, "], got ", layer);
  return layer > 0 ? layer : stored + layer + 1;
}

/// The class row is dropped where there is one.
void check_rows(const JsonView& root, const Config& c) {
  constexpr const char* kKey = "vision_feature_select_strategy";
  const std::string fallback = c.format == Format::kOnevision ? "full" : "default";
  const std::string only = c.kind == Tower::kClip ? "default" : "full";
  const std::string got = root.string_or(kKey, fallback);
  FOVEA_CHECK(got == only, kUnsupported, root.path(), ": ", kKey, ": of this tower only ", only,
              " is supported, got ", got);
}

/// The number in "anyres_max_9".
std::int64_t read_max_canvas_views(const JsonView& root) {
  constexpr std::string_view kBegin = "anyres_max_";
  constexpr std::int64_t kMost = 1024;
  const std::string text = root.string_or("vision_aspect_ratio", "anyres_max_9");
  const char* const end = text.data() + text.size();
  std::int64_t number = 0;
  const bool is_number = text.starts_with(kBegin) &&
                         std::from_chars(text.data() + kBegin.size(), end, number).ptr == end;
  FOVEA_CHECK(is_number && number >= 1 && number <= kMost, kUnsupported, root.path(),
              ": vision_aspect_ratio: expected anyres_max_N with N in [1, ", kMost, "], got ",
              text);
  return number;
}

/// Files leave the width out where it is that of the language model's class.
std::int64_t read_text_hidden_size(const JsonView& root) {
  constexpr std::array<std::string_view, 3> kOfWidth4096{"llama", "mistral", "qwen2"};
  const JsonView text = root.at("text_config");
  const std::string type = text.string_or("model_type", "llama");
  const bool is_known = std::ranges::find(kOfWidth4096, type) != kOfWidth4096.end();
  return is_known ? common::read_size(text, "hidden_size", 4096)
                  : common::as_size(text.at("hidden_size"));
}

}  // namespace

Config parse_config(const checkpoint::HfConfig& files, Format format) {
  constexpr const char* kAct = "projector_hidden_act";
  const JsonView root = files.config.root();
  const JsonView vision = root.at("vision_config");
  const bool is_onevision = format == Format::kOnevision;
  const std::string type =
      vision.string_or("model_type", is_onevision ? "siglip_vision_model" : "clip_vision_model");
  FOVEA_CHECK(type == "clip_vision_model" || type == "siglip_vision_model", kUnsupported,
              vision.path(), ".model_type: expected clip_vision_model or siglip_vision_model, got ",
              type);
  Config c{.format = format,
           .kind = type == "clip_vision_model" ? Tower::kClip : Tower::kSiglip,
           .tower = {}};
  c.tower = c.kind == Tower::kClip ? common::read_clip(vision) : common::read_siglip(vision);
  check_rows(root, c);
  c.tower.num_hidden_layers =
      blocks_that_run(root, is_onevision ? -1 : -2, c.tower.num_hidden_layers);
  c.projector_hidden_act =
      common::parse_activation(root.string_or(kAct, "gelu"), cat(root.path(), ": ", kAct));
  c.multimodal_projector_bias = root.bool_or("multimodal_projector_bias", true);
  if (is_onevision) c.max_canvas_views = read_max_canvas_views(root);
  c.text_hidden_size = read_text_hidden_size(root);
  return c;
}

}  // namespace fovea::llava
