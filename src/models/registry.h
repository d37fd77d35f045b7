#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "checkpoint/hf_config.h"
#include "checkpoint/weight_source.h"
#include "fovea/engine.h"
#include "models/encoder_graph_model.h"

namespace fovea {

/// One family of vision towers. A new family is one folder and one line in registry.cpp.
struct ModelFamily {
  std::string_view name;                            ///< folder under models/
  std::span<const std::string_view> architectures;  ///< values of config.json architectures[0]

  /// Builds a model that can plan and preprocess, and count its work, but has no weights.
  std::unique_ptr<EncoderGraphModel> (*make_planner)(const checkpoint::HfConfig& files,
                                                     const MediaOptions& media);
  /// Builds the model with its weights on `device`. All tensors are checked before one is loaded.
  std::unique_ptr<EncoderGraphModel> (*load)(const checkpoint::HfConfig& files,
                                             const MediaOptions& media,
                                             const checkpoint::WeightSource& weights,
                                             Device& device, Stream& stream);
  /// Describes the tower and every tensor it asks for.
  ModelReport (*describe)(const checkpoint::HfConfig& files,
                          const checkpoint::WeightSource& weights);
  /// What preprocessing takes for granted because the checkpoint lacks a processor file that says
  /// it, or a key in it: "missing=<file> [keys=<key>,...] <name>=<value> ..."; empty if nothing.
  std::string (*assumptions)(const checkpoint::HfConfig& files, const MediaOptions& media);
};

/// All families, in the order of docs/models.md.
[[nodiscard]] std::span<const ModelFamily* const> model_families() noexcept;

/// The family of an architecture string.
/// @throws Error(kUnsupported) listing the known ones.
[[nodiscard]] const ModelFamily& find_family(std::string_view architecture);

}  // namespace fovea
