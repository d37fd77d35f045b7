// Towers that are not Fovea's, from shared libraries.
#include "models/tower_library.h"

#include <filesystem>
#include <memory>

#include "core/check.h"
#include "core/plugin/plugin.h"
#include "fovea/tower/models/tower_library.h"
#include "models/common/weight_loader.h"

namespace fovea {

/// The loader of an engine, which has checked before; or one of its own, and what checks for it.
struct TowerWeights::Impl {
  struct Own {
    Own(const checkpoint::WeightSource& source, Device& device)
        : weights(source),
          stream(device.create_copy_stream()),
          loader(source, "", device, *stream) {}

    const checkpoint::WeightSource& weights;
    std::unique_ptr<Stream> stream;
    common::WeightLoader loader;
  };

  /// Calls `load(loader)`.
  template <class Load>
  auto run(const Load& load) {
    if (own == nullptr) return load(*loader);
    common::WeightLoader checker(own->weights, "");
    (void)load(checker);
    for (const TensorReport& tensor : checker.report()) {
      FOVEA_CHECK(tensor.problem.empty(), kNotFound, tensor.name, " ", tensor.problem);
    }
    auto loaded = load(own->loader);
    own->stream->synchronize();
    return loaded;
  }

  common::WeightLoader* loader = nullptr;
  std::unique_ptr<Own> own = nullptr;
};

TowerWeights::TowerWeights(const checkpoint::WeightSource& source, Device& device)
    : impl_(std::make_unique<Impl>(Impl{.own = std::make_unique<Impl::Own>(source, device)})) {}

TowerWeights::TowerWeights(common::WeightLoader& loader)
    : impl_(std::make_unique<Impl>(Impl{.loader = &loader})) {}

TowerWeights::~TowerWeights() = default;

Tensor TowerWeights::f32(const std::string& name, const Shape& shape) {
  return impl_->run([&](common::WeightLoader& loader) { return loader.f32(name, shape); });
}

ops::PackedLinear TowerWeights::linear(const std::string& name, std::int64_t out_features,
                                       std::int64_t in_features, bool has_bias) {
  using Bias = common::WeightLoader::Bias;
  return impl_->run([&](common::WeightLoader& loader) {
    return loader.linear(name, out_features, {in_features}, has_bias ? Bias::kYes : Bias::kNo);
  });
}

Tensor TowerWeights::constant(std::span<const float> values, const Shape& shape) {
  return impl_->run([&](common::WeightLoader& loader) { return loader.constant(values, shape); });
}

ModelFamily load_tower_library(const std::string& path) {
  const std::string absolute = std::filesystem::absolute(path).lexically_normal().string();
  FOVEA_CHECK(path_exists(absolute), kNotFound, "tower: no file ", absolute);
  const PluginEntry entry = load_plugin_entry(absolute, "fovea_tower", kTowerNote.build);
  FOVEA_CHECK(entry.reason.empty(), kUnsupported, "tower: ", entry.reason,
              "; docs/own_tower.md says how a library with a tower is built");
  const TowerLibrary* const library =
      reinterpret_cast<const TowerLibrary* (*)()>(entry.function)();  // NOLINT: dlsym's type
  FOVEA_CHECK(library != nullptr && library->make != nullptr && !library->name.empty(),
              kUnsupported, "tower: ", absolute, ": fovea_tower() returns no tower");
  return {.name = "tower", .architectures = {&library->name, 1}, .library = library};
}

}  // namespace fovea
