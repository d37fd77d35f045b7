// DeepSeek-VL behind the model protocol: one path whose unit is a view, the padded image.
#include "models/deepseek_vl/model.h"

#include <array>
#include <memory>
#include <utility>

#include "models/common/views/model.h"
#include "models/deepseek_vl/processor.h"

namespace fovea::deepseek_vl {

namespace {

common::ViewTower describe(const Config& c) {
  return {.width = c.text_hidden_size,
          .paths = {{.layout = common::siglip_layout(c.tower), .max_item_views = 1}},
          .facts = common::siglip_facts(c.tower)};
}

using Model = common::PlainViewModel<Config, Weights>;

std::unique_ptr<EncoderGraphModel> make(const checkpoint::HfConfig& files,
                                        const MediaOptions& media, common::WeightLoader& loader) {
  const Config config = parse_config(files);
  const Processing processing = read_processing(files, config, media);
  Weights weights = load_weights(loader, config, processing.views.scaling.table());
  return std::make_unique<Model>(describe(config), std::make_unique<Processor>(processing), config,
                                 std::move(weights), &forward);
}

constexpr std::array<std::string_view, 1> kArchitectures{"DeepseekVLForConditionalGeneration"};

/// As transformers names its modules. Source: transformers 5.24, conversion_mapping.py.
constexpr std::array<common::RenamedPart, 1> kModules{{
    {"vision_model.vision_model.", "vision_model."},
}};
constexpr std::array<common::OtherNames, 1> kOtherNames{{
    {"model.", "vision_model.embeddings.patch_embedding.weight", kModules},
}};

}  // namespace

const ModelFamily& family() noexcept {
  static constexpr ModelFamily kFamily{
      .name = "deepseek_vl",
      .architectures = kArchitectures,
      .anchor_folder = "",
      .anchor_tensor = "vision_model.vision_model.embeddings.patch_embedding.weight",
      .make = &make,
      .other_names = kOtherNames};
  return kFamily;
}

}  // namespace fovea::deepseek_vl
