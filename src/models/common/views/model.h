#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "fovea/tower/models/encoder_graph_model.h"
#include "models/common/model.h"
#include "models/common/views/inputs.h"

namespace fovea::common {

/// A path over equal views. Its unit and its smallest budget are the tokens of one.
struct ViewPath {
  std::string name = "default";
  ViewLayout layout;
  bool allow_zero_tokens = false;                   ///< as in PathSpec
  std::optional<std::int64_t> max_item_views = {};  ///< most views of one item, if there is a bound
};

/// The facts of a tower over square views that the rest of the system must know.
struct ViewTower {
  std::vector<Modality> modalities{Modality::kImage};
  std::int64_t width = 0;                             ///< columns of a row
  std::optional<std::int64_t> max_token_budget = {};  ///< as in GraphSpec
  std::vector<ViewPath> paths;                        ///< the smallest budget is that of the first
  bool vectors = false;  ///< the first token of an item is its only row, a vector of the whole
  Facts facts;
};

/// A model over square views: everything but the forward, and the order of rows where there are
/// several paths. A unit is a view; the pixels of an item are its views, path after path.
class ViewModel : public TowerModel {
 public:
  ViewModel(ViewTower tower, std::unique_ptr<const ItemProcessor> processor);

  /// These two are those of ViewInputs; a family with further buffers overrides both.
  [[nodiscard]] std::vector<BufferDecl> inputs(PathId path,
                                               const GraphCapacity& capacity) const override;
  void fill_inputs(PathId path, const GraphCapacity& capacity, std::span<const ItemPart> parts,
                   InputWriter& writer) const override;
  /// Default of one path: tokens, or of vectors the first of each part.
  void assemble(ExecContext& ctx, PathId path, TensorView rows, std::span<const ItemPart> parts,
                std::span<const TensorView> out) const override;

 protected:
  /// The views of a graph, and those of a batch.
  [[nodiscard]] std::int64_t views_of(PathId path, const GraphCapacity& capacity) const;
  [[nodiscard]] static std::int64_t views_of(std::span<const ItemPart> parts);
  /// The inputs of the forward of a path.
  [[nodiscard]] ViewInputs view_inputs(PathId path, const GraphCapacity& capacity,
                                       const NamedTensors& in) const;

 private:
  [[nodiscard]] const ViewLayout& layout(PathId path) const;

  ViewTower tower_;
};

/// The model of a family over one path whose forward reads ViewInputs alone.
template <class Config, class Weights>
class PlainViewModel final : public ViewModel {
 public:
  using Forward = void (*)(ExecContext& ctx, const Config& config, const Weights& weights,
                           const ViewInputs& in, TensorView out);
  /// Puts the tokens of a part of an item to their places among the rows of the whole item.
  using AssemblePart = void (*)(ExecContext& ctx, const Config& config, const Weights& weights,
                                const ItemPart& part, TensorView tokens, TensorView out);

  /// @param place null: as ViewModel::assemble.
  PlainViewModel(ViewTower tower, std::unique_ptr<const ItemProcessor> processor, Config config,
                 Weights weights, Forward run, AssemblePart place = nullptr)
      : ViewModel(std::move(tower), std::move(processor)),
        config_(std::move(config)),
        weights_(std::move(weights)),
        forward_(run),
        assemble_part_(place) {}

  void forward(ExecContext& ctx, PathId path, const GraphCapacity& capacity, const NamedTensors& in,
               TensorView out) const override {
    forward_(ctx, config_, weights_, view_inputs(path, capacity, in), out);
  }

  void assemble(ExecContext& ctx, PathId path, TensorView rows, std::span<const ItemPart> parts,
                std::span<const TensorView> out) const override {
    if (assemble_part_ == nullptr) return ViewModel::assemble(ctx, path, rows, parts, out);
    std::int64_t taken = 0;
    for (std::size_t i = 0; i < parts.size(); ++i) {
      const std::int64_t count = parts[i].tokens();
      assemble_part_(ctx, config_, weights_, parts[i], row_range(rows, taken, count), out[i]);
      taken += count;
    }
  }

 private:
  Config config_;
  Weights weights_;
  Forward forward_;
  AssemblePart assemble_part_;
};

}  // namespace fovea::common
