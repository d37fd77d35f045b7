// SigLIP 2 NaFlex behind the model protocol: one path of images of any number of patches.
#include "models/siglip2/model.h"

#include <algorithm>
#include <array>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "core/check.h"
#include "models/common/grid/model.h"
#include "models/common/vectors.h"
#include "models/siglip2/processor.h"

namespace fovea::siglip2 {

namespace {

constexpr auto kImageOptions = std::to_array<std::string_view>({"max_num_patches"});

constexpr const char* kSequenceOf = "sequence_of";

common::GridTower describe(const Config& c) {
  const std::int64_t width = c.blocks.hidden_size;
  common::GridTower tower{
      .main_width = width,
      .out_width = width,
      .attention_parity_rows = common::attention_parity(width, c.blocks.intermediate_size),
      .facts = {{"num_hidden_layers", cat(c.blocks.num_hidden_layers)},
                {"hidden_size", cat(width)},
                {"intermediate_size", cat(c.blocks.intermediate_size)},
                {"num_attention_heads", cat(c.blocks.num_attention_heads)}}};
  if (c.vision_use_head) tower.facts.emplace_back("vector", cat(width));
  return tower;
}

/// The model, with the image of every row where its vector goes to them.
class Model final : public common::GridModel {
 public:
  Model(std::unique_ptr<const Processor> processor, const Config& config, bool vectors,
        Weights weights)
      : GridModel(describe(config), std::move(processor)),
        config_(config),
        vectors_(vectors),
        weights_(std::move(weights)) {}

  [[nodiscard]] std::vector<BufferDecl> inputs(PathId path,
                                               const GraphCapacity& capacity) const override {
    std::vector<BufferDecl> buffers = GridModel::inputs(path, capacity);
    if (vectors_) buffers.push_back({kSequenceOf, DType::kI32, {capacity.tokens}});
    return buffers;
  }

  void fill_inputs(PathId path, const GraphCapacity& capacity, std::span<const ItemPart> parts,
                   InputWriter& writer) const override {
    GridModel::fill_inputs(path, capacity, parts, writer);
    if (!vectors_) return;
    std::int64_t rows = 0;
    for (const ItemPart& part : parts) rows += part.tokens();
    auto* next = writer.claim(kSequenceOf, rows).as<std::int32_t>();
    std::int32_t image = 0;
    for (const ItemPart& part : parts) next = std::fill_n(next, part.tokens(), image++);
  }

  void forward(ExecContext& ctx, PathId, const GraphCapacity&, const NamedTensors& in,
               TensorView out) const override {
    siglip2::forward(ctx, config_, weights_, common::GridInputs::of(in),
                     vectors_ ? in[kSequenceOf] : ConstTensorView{}, out);
  }

  void assemble(ExecContext& ctx, PathId path, TensorView rows, std::span<const ItemPart> parts,
                std::span<const TensorView> out) const override {
    if (!vectors_) return GridModel::assemble(ctx, path, rows, parts, out);
    common::assemble_vectors(ctx, rows, parts, out);
  }

 private:
  Config config_;
  bool vectors_;
  Weights weights_;
};

std::unique_ptr<EncoderGraphModel> make_vectors(const checkpoint::HfConfig& files,
                                                const MediaOptions& media,
                                                common::WeightLoader& loader, TowerOutput output) {
  const Config config = parse_config(files);
  const bool vectors = output != TowerOutput::kRows;
  FOVEA_CHECK(config.vision_use_head || !vectors, kUnsupported, files.config.root().path(),
              ": vision_use_head: false, so the model makes no vectors");
  common::GridProcessing processing = read_processing(files, config.grid, media);
  Weights weights = load_weights(loader, config, output, processing.scaling.table());
  return std::make_unique<Model>(std::make_unique<Processor>(std::move(processing), vectors),
                                 config, vectors, std::move(weights));
}

std::unique_ptr<EncoderGraphModel> make(const checkpoint::HfConfig& files,
                                        const MediaOptions& media, common::WeightLoader& loader) {
  return make_vectors(files, media, loader, TowerOutput::kRows);
}

constexpr std::array<std::string_view, 2> kArchitectures{"Siglip2Model", "Siglip2VisionModel"};

}  // namespace

const ModelFamily& family() noexcept {
  static constexpr ModelFamily kFamily{.name = "siglip2",
                                       .architectures = kArchitectures,
                                       .anchor_folder = "",
                                       .anchor_tensor = "embeddings.patch_embedding.weight",
                                       .make = &make,
                                       .item_options = {.image = kImageOptions},
                                       .make_vectors = &make_vectors};
  return kFamily;
}

}  // namespace fovea::siglip2
