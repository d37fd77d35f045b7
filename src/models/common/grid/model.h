#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "fovea/tower/models/encoder_graph_model.h"
#include "models/common/grid/inputs.h"
#include "models/common/grid/processor.h"

namespace fovea::common {

/// The facts of a tower over grids that the rest of the system must know.
struct GridTower {
  std::int64_t main_width = 0;             ///< as in GraphSpec
  std::int64_t out_width = 0;              ///< as in GraphSpec
  std::int64_t attention_parity_rows = 0;  ///< as in GraphSpec
  std::vector<std::pair<std::string, std::string>> facts;
};

/// Rows of a sequence at which attention costs as much as the GEMMs of a block: per row a block
/// multiplies 4 w^2 + 2 w m times in its GEMMs and, per key, 2 w times in its attention.
/// @param width w of the tower. @param mlp_width m, of the wide side of its MLP.
[[nodiscard]] constexpr std::int64_t attention_parity(std::int64_t width, std::int64_t mlp_width) {
  return 2 * width + mlp_width;
}

/// A model with one path over grids of patches: everything but the forward.
class GridModel : public EncoderGraphModel {
 public:
  GridModel(GridTower tower, GridProcessing processing);
  /// The same with a processor of the family's own.
  GridModel(GridTower tower, std::unique_ptr<const GridProcessor> processor);

  [[nodiscard]] const GraphSpec& graph_spec() const noexcept final { return spec_; }
  [[nodiscard]] const ItemProcessor& processor() const noexcept final { return *processor_; }
  [[nodiscard]] std::vector<std::pair<std::string, std::string>> facts() const final;
  [[nodiscard]] std::int64_t path_width(PathId) const final { return spec_.out_width; }
  /// These two are those of GridInputs; a family with further buffers overrides both.
  [[nodiscard]] std::vector<BufferDecl> inputs(PathId,
                                               const GraphCapacity& capacity) const override;
  void fill_inputs(PathId, const GraphCapacity&, std::span<const ItemPart> parts,
                   InputWriter& writer) const override;

 protected:
  [[nodiscard]] const GridGeometry& geometry() const noexcept {
    return processor_->processing().geometry;
  }

 private:
  std::unique_ptr<const GridProcessor> processor_;
  GraphSpec spec_;
  std::vector<std::pair<std::string, std::string>> facts_;
};

/// The model of a family that has nothing of its own but a forward and, where that reads more than
/// GridInputs, its inputs. @param Inputs with the functions declare, fill and of of GridInputs.
template <class Config, class Weights, class Inputs = GridInputs>
class PlainGridModel final : public GridModel {
 public:
  using Forward = void (*)(ExecContext& ctx, const Config& config, const Weights& weights,
                           const Inputs& in, TensorView out);

  /// @param host GridProcessing, or a processor of the family's own.
  template <class Host>
  PlainGridModel(GridTower tower, Host host, Config config, Weights weights, Forward run)
      : GridModel(std::move(tower), std::move(host)),
        config_(std::move(config)),
        weights_(std::move(weights)),
        forward_(run) {}

  [[nodiscard]] std::vector<BufferDecl> inputs(PathId,
                                               const GraphCapacity& capacity) const override {
    return Inputs::declare(geometry(), capacity);
  }
  void fill_inputs(PathId, const GraphCapacity&, std::span<const ItemPart> parts,
                   InputWriter& writer) const override {
    Inputs::fill(geometry(), parts, writer);
  }
  void forward(ExecContext& ctx, PathId, const GraphCapacity&, const NamedTensors& in,
               TensorView out) const override {
    forward_(ctx, config_, weights_, Inputs::of(in), out);
  }

 private:
  Config config_;
  Weights weights_;
  Forward forward_;
};

}  // namespace fovea::common
