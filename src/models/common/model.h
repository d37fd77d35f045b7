#pragma once

#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/check.h"
#include "fovea/tower/models/encoder_graph_model.h"

namespace fovea::common {

/// The facts about a tower, as EncoderGraphModel::facts.
using Facts = std::vector<std::pair<std::string, std::string>>;

/// The facts of a transformer whose Config has the fields of read_transformer, and more.
template <class Config>
[[nodiscard]] Facts transformer_facts(const Config& c, const Facts& more) {
  Facts facts{{"num_hidden_layers", cat(c.num_hidden_layers)},
              {"hidden_size", cat(c.hidden_size)},
              {"intermediate_size", cat(c.intermediate_size)},
              {"num_attention_heads", cat(c.num_attention_heads)}};
  facts.insert(facts.end(), more.begin(), more.end());
  return facts;
}

/// The answers that a model gives without its weights.
struct TowerAnswers {
  GraphSpec spec;
  Facts facts;
};

/// A model whose answers do not change: everything but inputs and the forward.
class TowerModel : public EncoderGraphModel {
 public:
  TowerModel(TowerAnswers answers, std::unique_ptr<const ItemProcessor> processor)
      : answers_(std::move(answers)), processor_(std::move(processor)) {}

  [[nodiscard]] const GraphSpec& graph_spec() const noexcept final { return answers_.spec; }
  [[nodiscard]] const ItemProcessor& processor() const noexcept final { return *processor_; }
  [[nodiscard]] Facts facts() const final { return answers_.facts; }
  [[nodiscard]] std::int64_t path_width(PathId) const final { return answers_.spec.out_width; }

 private:
  TowerAnswers answers_;
  std::unique_ptr<const ItemProcessor> processor_;
};

/// The model of a family that has a processor, inputs and a forward of its own, and nothing else.
/// @tparam Base TowerModel, or a class of it whose constructor takes a description and a processor.
/// @tparam Inputs with the functions declare, fill and of, which are given the processor, and the
/// capacity of the graph.
template <class Base, class Processor, class Config, class Weights, class Inputs>
class OwnInputsModel final : public Base {
 public:
  using Forward = void (*)(ExecContext& ctx, const Config& config, const Weights& weights,
                           const Inputs& in, TensorView out);

  template <class Description>
  OwnInputsModel(Description tower, std::unique_ptr<const Processor> processor, Config config,
                 Weights weights, Forward run)
      : Base(std::move(tower), std::move(processor)),
        config_(std::move(config)),
        weights_(std::move(weights)),
        forward_(run) {}

  [[nodiscard]] std::vector<BufferDecl> inputs(PathId,
                                               const GraphCapacity& capacity) const override {
    return Inputs::declare(host(), capacity);
  }
  void fill_inputs(PathId, const GraphCapacity& capacity, std::span<const ItemPart> parts,
                   InputWriter& writer) const override {
    Inputs::fill(host(), capacity, parts, writer);
  }
  void forward(ExecContext& ctx, PathId, const GraphCapacity& capacity, const NamedTensors& in,
               TensorView out) const override {
    forward_(ctx, config_, weights_, Inputs::of(host(), capacity, in), out);
  }

 private:
  [[nodiscard]] const Processor& host() const {
    return static_cast<const Processor&>(this->processor());
  }

  Config config_;
  Weights weights_;
  Forward forward_;
};

}  // namespace fovea::common
