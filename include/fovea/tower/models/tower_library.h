#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "fovea/export.h"
#include "fovea/options.h"
#include "fovea/tower/checkpoint/weight_source.h"
#include "fovea/tower/core/plugin_note.h"
#include "fovea/tower/core/shape.h"
#include "fovea/tower/device/device.h"
#include "fovea/tower/models/encoder_graph_model.h"
#include "fovea/tower/ops/linear.h"
#include "fovea/tower/version.h"

namespace fovea {

namespace common {
class WeightLoader;
}

/// The tensors of a checkpoint for a tower, by name. A tower asks for all of them where it is made,
/// which happens twice: once to check a checkpoint, where nothing is read and what is returned has
/// shapes and no memory, and once to load it. Dummy weights have every tensor.
class FOVEA_API TowerWeights {
 public:
  /// Loads onto `device`; both must outlive this. Tensors are there when a function returns.
  TowerWeights(const checkpoint::WeightSource& source, Device& device);
  /// What an engine makes a tower with. `loader` must outlive this.
  explicit TowerWeights(common::WeightLoader& loader);
  TowerWeights(const TowerWeights&) = delete;
  TowerWeights& operator=(const TowerWeights&) = delete;
  ~TowerWeights();

  /// The tensor `name`, widened to f32.
  /// @throws Error(kNotFound) for one that is missing or has another shape or dtype, of which an
  /// engine reports all at once instead; as WeightSource::tensor.
  [[nodiscard]] Tensor f32(const std::string& name, const Shape& shape);
  /// `<name>.weight`, out_features rows whose sizes multiply to in_features, and, if it has one,
  /// `<name>.bias`, packed for GEMMs. @throws as f32, and as ops::pack_linear.
  [[nodiscard]] ops::PackedLinear linear(const std::string& name, std::int64_t out_features,
                                         std::int64_t in_features, bool has_bias = true);
  /// Values that are in no checkpoint, f32, row-major. @throws Error(kOutOfMemory).
  [[nodiscard]] Tensor constant(std::span<const float> values, const Shape& shape);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// A tower in a shared library of its own, which EngineOptions::tower names. The library defines a
/// note, by which versions are compared before any of its code runs, and an entry, whose result
/// lives as long as the process (libraries are never unloaded):
///   [[gnu::section(".note.fovea"), gnu::aligned(4), gnu::used]] constexpr fovea::PluginNote note =
///       fovea::kTowerNote;
///   extern "C" [[gnu::visibility("default")]] const fovea::TowerLibrary* fovea_tower();
struct TowerLibrary {
  /// In reports, in the place of `architectures` of config.json, which is not looked at.
  std::string_view name;
  /// Builds the model of a checkpoint.
  /// @param directory of config.json, which the tower may read.
  /// @throws Error; what else is thrown becomes Error(kInternal).
  std::unique_ptr<EncoderGraphModel> (*make)(const std::string& directory,
                                             const MediaOptions& media, TowerWeights& weights);
};

inline constexpr PluginNote kTowerNote{
    .build = {.kind = {'t', 'o', 'w', 'e', 'r'}, .interface_number = kTowerVersion}};

}  // namespace fovea
