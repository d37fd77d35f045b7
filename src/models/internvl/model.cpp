// InternVL behind the model protocol: one path whose unit is a view, be it a tile, a thumbnail or a
// frame. Source: docs/reference/internvl.md, "Encoder graphs".
#include "models/internvl/model.h"

#include <array>
#include <memory>
#include <utility>
#include <vector>

#include "core/check.h"
#include "models/common/views/model.h"
#include "models/internvl/config.h"
#include "models/internvl/processor.h"

namespace fovea::internvl {

namespace {

constexpr auto kChatOptions =
    std::to_array<std::string_view>({"min_dynamic_patch", "max_dynamic_patch"});
constexpr auto kNativeOptions = std::to_array<std::string_view>({"min_patches", "max_patches"});

constexpr std::array<std::string_view, 2> kChat{"InternVLChatModel",
                                                "QianfanOCRForConditionalGeneration"};
constexpr std::array<std::string_view, 2> kNative{"InternVLForConditionalGeneration",
                                                  "InternS1ForConditionalGeneration"};

common::ViewTower describe(const Config& c, const Processing& p) {
  std::vector<Modality> modalities{Modality::kImage};
  if (p.views.video_refusal.empty()) modalities.push_back(Modality::kVideo);
  return {.modalities = std::move(modalities),
          .width = c.llm_hidden_size,
          .paths = {{.layout = {.view = c.view,
                                .sequence = {.patches = c.view.patches()},
                                .tokens = c.view.tokens(),
                                .stages = {c.view.tokens()},
                                .chunk_stages = {}}}},
          .facts = {
              {"depth", cat(c.num_hidden_layers)},
              {"width", cat(c.hidden_size)},
              {"MLP width", cat(c.intermediate_size)},
              {"heads", cat(c.num_attention_heads)},
              {"norm", cat(c.rms_norm ? "RMS" : "layer", c.qk_normalization ? ", q and k" : "")},
              {"view", cat(c.view.side_px, "x", c.view.side_px, ", ", c.view.tokens(), " tokens")},
              {"tiles",
               cat(p.min_tiles, "..", p.max_tiles, p.use_thumbnail ? " and a thumbnail" : "")}}};
}

using Model = common::PlainViewModel<Config, Weights>;

template <Format kFormat>
std::unique_ptr<EncoderGraphModel> make(const checkpoint::HfConfig& files,
                                        const MediaOptions& media, common::WeightLoader& loader) {
  const bool is_qianfan = known_architecture(files) == kChat[1];
  const Config config = parse_config(files, is_qianfan ? Format::kQianfan : kFormat);
  const Processing processing = read_processing(files, config, media);
  Weights weights = load_weights(loader, config, processing.normalize);
  return std::make_unique<Model>(describe(config, processing),
                                 std::make_unique<Processor>(processing), config,
                                 std::move(weights), &forward);
}

}  // namespace

const ModelFamily& chat_family() noexcept {
  static constexpr ModelFamily kFamily{.name = "internvl",
                                       .architectures = kChat,
                                       .anchor_folder = "",
                                       .anchor_tensor = "vision_model.embeddings.class_embedding",
                                       .make = &make<Format::kChat>,
                                       .item_options = {.image = kChatOptions}};
  return kFamily;
}

const ModelFamily& native_family() noexcept {
  static constexpr ModelFamily kFamily{.name = "internvl",
                                       .architectures = kNative,
                                       .anchor_folder = "",
                                       .anchor_tensor = "vision_tower.embeddings.cls_token",
                                       .make = &make<Format::kNative>,
                                       .item_options = {.image = kNativeOptions}};
  return kFamily;
}

}  // namespace fovea::internvl
