// ERNIE-4.5-VL behind the model protocol. Source: docs/reference/ernie4_5_vl.md, "Encoder graphs".
#include "models/ernie4_5_vl/model.h"

#include <array>
#include <memory>
#include <utility>

#include "core/check.h"
#include "models/common/grid/model.h"
#include "models/common/grid/processor_file.h"

namespace fovea::ernie4_5_vl {

namespace {

constexpr std::array kArchitectures = std::to_array<std::string_view>(
    {"Ernie4_5_VLMoeForConditionalGeneration", "Ernie4_5_VL_MoeForConditionalGeneration"});

common::GridTower describe(const Config& c) {
  return {.main_width = c.text_hidden_size,
          .out_width = c.text_hidden_size,
          .attention_parity_rows = common::attention_parity(c.hidden_size, c.intermediate_size),
          .facts = {{"depth", cat(c.depth)},
                    {"hidden_size", cat(c.hidden_size)},
                    {"intermediate_size", cat(c.intermediate_size)},
                    {"num_heads", cat(c.num_heads)}}};
}

std::unique_ptr<EncoderGraphModel> make(const checkpoint::HfConfig& files,
                                        const MediaOptions& media, common::WeightLoader& loader) {
  const Config config = parse_config(files);
  common::GridProcessing processing = read_processing(files, config.grid, media);
  Weights weights = load_weights(loader, config, processing.scaling.table());
  return std::make_unique<common::PlainGridModel<Config, Weights, PairInputs>>(
      describe(config), std::move(processing), config, std::move(weights), &forward);
}

/// As save_pretrained() of transformers 5.24 writes them, whether published ones were loaded or
/// not.
constexpr std::array<common::RenamedPart, 1> kSaved{{
    {"model.resampler_model.", "resampler_model."},
}};
/// As transformers names its modules. Source: transformers 5.24, conversion_mapping.py.
constexpr std::array<common::RenamedPart, 5> kModules{{
    {"vision_model.", "vision_tower."},
    {"model.resampler_model.", "resampler_model."},
    {"_linear.0", "_linear.fc1"},
    {"_linear.2", "_linear.fc2"},
    {"_linear.3", "_linear.ln"},
}};
constexpr std::array<common::OtherNames, 2> kOtherNames{{
    {"model.", "vision_model.patch_embed.proj.weight", kSaved},
    {"", "vision_tower.patch_embed.proj.weight", kModules},
}};

}  // namespace

const ModelFamily& family() noexcept {
  static constexpr ModelFamily kFamily{.name = "ernie4_5_vl",
                                       .architectures = kArchitectures,
                                       .anchor_folder = "",
                                       .anchor_tensor = "vision_model.patch_embed.proj.weight",
                                       .make = &make,
                                       .has_pixel_range = true,
                                       .item_options = {.image = common::kSizeOption},
                                       .other_names = kOtherNames};
  return kFamily;
}

}  // namespace fovea::ernie4_5_vl
