#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "fovea/tower/models/encoder_graph_model.h"
#include "models/common/grid/inputs.h"
#include "models/common/grid/processor.h"
#include "models/common/model.h"

namespace fovea::common {

/// The facts of a tower over grids that the rest of the system must know.
struct GridTower {
  std::int64_t main_width = 0;             ///< as in GraphSpec
  std::int64_t out_width = 0;              ///< as in GraphSpec
  std::int64_t attention_parity_rows = 0;  ///< as in GraphSpec
  std::int64_t team_heads = 0;             ///< as in GraphSpec
  Facts facts;
};

/// Rows of a sequence at which attention costs as much as the GEMMs of a block: per row a block
/// multiplies 4 w^2 + 2 w m times in its GEMMs and, per key, 2 w times in its attention.
/// @param width w of the tower. @param mlp_width m, of the wide side of its MLP.
[[nodiscard]] constexpr std::int64_t attention_parity(std::int64_t width, std::int64_t mlp_width) {
  return 2 * width + mlp_width;
}

/// A model with one path over grids of patches: everything but the forward.
class GridModel : public TowerModel {
 public:
  GridModel(GridTower tower, GridProcessing processing);
  /// The same with a processor of the family's own.
  GridModel(GridTower tower, std::unique_ptr<const GridProcessor> processor);

  /// Those of GridInputs. A family with further buffers overrides both, with view_capacity and
  /// view_runs.
  [[nodiscard]] std::vector<BufferDecl> inputs(PathId,
                                               const GraphCapacity& capacity) const override;
  void fill_inputs(PathId, const GraphCapacity&, std::span<const ItemPart> parts,
                   InputWriter& writer) const override;

 protected:
  [[nodiscard]] const GridProcessing& processing() const noexcept {
    return static_cast<const GridProcessor&>(processor()).processing();
  }
  [[nodiscard]] const GridGeometry& geometry() const noexcept { return processing().geometry; }
  /// The capacity with the sequences of as many views as a graph has room for.
  [[nodiscard]] GraphCapacity view_capacity(const GraphCapacity& capacity) const;
  /// The runs of parts, or those of their views.
  [[nodiscard]] std::vector<GridRun> view_runs(std::span<const ItemPart> parts) const;
};

/// The model of a family that has nothing of its own but a forward and, where that reads more than
/// GridInputs, further inputs. @param Further structs with the functions
///   static std::vector<BufferDecl> declare(const Config& config, const GraphCapacity& capacity);
///   static void fill(const Config& config, std::span<const GridRun> runs, const PatchTables& rows,
///                    InputWriter& writer);
///   static Further of(const NamedTensors& in);
/// like those of GridInputs. `fill` may change `rows`, which GridInputs has written.
template <class Config, class Weights, class... Further>
class PlainGridModel final : public GridModel {
 public:
  using Forward = void (*)(ExecContext& ctx, const Config& config, const Weights& weights,
                           const GridInputs& in, const Further&... further, TensorView out);

  /// @param host GridProcessing, or a processor of the family's own.
  template <class Host>
  PlainGridModel(GridTower tower, Host host, Config config, Weights weights, Forward run)
      : GridModel(std::move(tower), std::move(host)),
        config_(std::move(config)),
        weights_(std::move(weights)),
        forward_(run) {}

  [[nodiscard]] std::vector<BufferDecl> inputs(PathId path,
                                               const GraphCapacity& capacity) const override {
    std::vector<BufferDecl> decls = GridModel::inputs(path, capacity);
    [[maybe_unused]] const auto append = [&](const std::vector<BufferDecl>& more) {
      decls.insert(decls.end(), more.begin(), more.end());
    };
    (append(Further::declare(config_, view_capacity(capacity))), ...);
    return decls;
  }
  void fill_inputs(PathId, const GraphCapacity&, std::span<const ItemPart> parts,
                   InputWriter& writer) const override {
    const std::vector<GridRun> runs = view_runs(parts);
    [[maybe_unused]] const PatchTables rows = GridInputs::fill(geometry(), runs, writer);
    (Further::fill(config_, runs, rows, writer), ...);
  }
  void forward(ExecContext& ctx, PathId, const GraphCapacity&, const NamedTensors& in,
               TensorView out) const override {
    forward_(ctx, config_, weights_, GridInputs::of(in), Further::of(in)..., out);
  }

 private:
  Config config_;
  Weights weights_;
  Forward forward_;
};

}  // namespace fovea::common
