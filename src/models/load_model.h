#pragma once

#include <memory>
#include <string>

#include "checkpoint/hf_config.h"
#include "fovea/options.h"
#include "fovea/reports.h"
#include "fovea/tower/checkpoint/weight_source.h"
#include "fovea/tower/device/device.h"
#include "fovea/tower/models/encoder_graph_model.h"
#include "models/quantization_plan.h"
#include "models/registry.h"

namespace fovea {

/// The model of a directory without its weights: it plans, preprocesses and counts its work, and
/// must not run. Reads nothing but `files`.
/// @throws Error(kUnsupported) for an unknown architecture and for vectors of a family that makes
/// none, and as ModelFamily::make.
[[nodiscard]] std::unique_ptr<EncoderGraphModel> plan_model(
    const checkpoint::HfConfig& files, const MediaOptions& media,
    TowerOutput output = TowerOutput::kRows);

/// A model whose tensors have been looked up in a checkpoint and not loaded.
struct CheckedModel {
  std::unique_ptr<EncoderGraphModel> planner;  ///< as plan_model
  ModelReport report;                          ///< all tensors, with what is wrong with them
};

/// Looks up every tensor of the model. Missing and misshapen ones are in the report, not thrown.
/// @throws as plan_model; Error(kNotFound) if `weights` holds no tower of the family at all.
[[nodiscard]] CheckedModel check_model(const checkpoint::HfConfig& files, const MediaOptions& media,
                                       const checkpoint::WeightSource& weights,
                                       TowerOutput output = TowerOutput::kRows);

/// @throws Error(kNotFound) with the number of tensors of `report` that are missing or misshapen in
/// `weights`, naming the first of them; Error(kUnsupported) if `files` say that the checkpoint is
/// quantised, naming the method as well.
void throw_if_incomplete(const ModelReport& report, const checkpoint::HfConfig& files,
                         const checkpoint::WeightSource& weights);

/// Builds the model with its weights on `device`, which must outlive it. Copies are submitted to
/// `stream`; the caller synchronises it before the model runs. `weights` must be complete.
/// @param plan the formats of its layers.
/// @throws as check_model and ops::pack_linear; Error(kOutOfMemory), Error(kIo).
[[nodiscard]] std::unique_ptr<EncoderGraphModel> load_model(
    const checkpoint::HfConfig& files, const MediaOptions& media,
    const checkpoint::WeightSource& weights, Device& device, Stream& stream,
    const QuantizationPlan& plan = {}, TowerOutput output = TowerOutput::kRows);

}  // namespace fovea
