// LLaVA behind the model protocol: one path whose unit is a view, be it the whole image, a part of
// its canvas or a frame. Source: docs/reference/llava.md, "Encoder graphs".
#include "models/llava/model.h"

#include <array>
#include <memory>
#include <utility>
#include <vector>

#include "core/check.h"
#include "models/common/views/model.h"
#include "models/llava/processor.h"

namespace fovea::llava {

namespace {

common::ViewLayout layout_of(const Config& c) {
  return c.kind == Tower::kClip ? common::clip_layout(c.tower) : common::siglip_layout(c.tower);
}

common::ViewTower describe(const Config& c, const Processing& p) {
  common::ViewTower tower{.width = c.text_hidden_size,
                          .paths = {{.layout = layout_of(c)}},
                          .facts = common::siglip_facts(c.tower)};
  const bool takes_videos = c.format == Format::kOnevision && p.video_refusal.empty();
  if (takes_videos) tower.modalities.push_back(Modality::kVideo);
  tower.facts.emplace_back("tower", c.kind == Tower::kClip ? "CLIP" : "SigLIP");
  tower.facts.emplace_back(
      "canvases", p.canvases.empty() ? "none" : cat(p.canvases.size(), ", and the whole image"));
  return tower;
}

class Model final : public common::ViewModel {
 public:
  Model(Config config, const Processing& processing, Weights weights)
      : ViewModel(describe(config, processing), std::make_unique<Processor>(processing)),
        config_(std::move(config)),
        weights_(std::move(weights)) {}

  void forward(ExecContext& ctx, PathId path, const GraphCapacity& capacity, const NamedTensors& in,
               TensorView out) const override {
    llava::forward(ctx, config_, weights_, view_inputs(path, capacity, in), out);
  }

  void assemble(ExecContext& ctx, PathId path, TensorView rows, std::span<const ItemPart> parts,
                std::span<const TensorView> out) const override {
    if (config_.format == Format::kLlava) return ViewModel::assemble(ctx, path, rows, parts, out);
    std::int64_t taken = 0;
    for (std::size_t i = 0; i < parts.size(); ++i) {
      const std::int64_t count = parts[i].tokens();
      assemble_part(ctx, config_, weights_, parts[i], row_range(rows, taken, count), out[i]);
      taken += count;
    }
  }

 private:
  Config config_;
  Weights weights_;
};

template <Format kFormat>
std::unique_ptr<EncoderGraphModel> make(const checkpoint::HfConfig& files,
                                        const MediaOptions& media, common::WeightLoader& loader) {
  const Config config = parse_config(files, kFormat);
  const Processing processing = read_processing(files, config, media);
  Weights weights = load_weights(loader, config, processing.views.scaling.table());
  return std::make_unique<Model>(config, processing, std::move(weights));
}

constexpr std::string_view kAnchor = "vision_tower.vision_model.embeddings.patch_embedding.weight";
constexpr std::array<std::string_view, 1> kLlava{"LlavaForConditionalGeneration"};
constexpr std::array<std::string_view, 1> kNext{"LlavaNextForConditionalGeneration"};
constexpr std::array<std::string_view, 1> kOnevision{"LlavaOnevisionForConditionalGeneration"};

}  // namespace

const ModelFamily& family() noexcept {
  static constexpr ModelFamily kFamily{.name = "llava",
                                       .architectures = kLlava,
                                       .anchor_folder = "",
                                       .anchor_tensor = kAnchor,
                                       .make = &make<Format::kLlava>};
  return kFamily;
}

const ModelFamily& next_family() noexcept {
  static constexpr ModelFamily kFamily{.name = "llava",
                                       .architectures = kNext,
                                       .anchor_folder = "",
                                       .anchor_tensor = kAnchor,
                                       .make = &make<Format::kNext>};
  return kFamily;
}

const ModelFamily& onevision_family() noexcept {
  static constexpr ModelFamily kFamily{.name = "llava",
                                       .architectures = kOnevision,
                                       .anchor_folder = "",
                                       .anchor_tensor = kAnchor,
                                       .make = &make<Format::kOnevision>};
  return kFamily;
}

}  // namespace fovea::llava
