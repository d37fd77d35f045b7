// DINOv2 and DINOv3 behind the model protocol: one path whose unit is a view of the whole image.
#include "models/dino/model.h"

#include <algorithm>
#include <array>
#include <memory>
#include <utility>

#include "core/check.h"
#include "media/resize/resize_fine.h"
#include "models/common/views/model.h"
#include "models/common/views/whole.h"

namespace fovea::dino {

namespace {

constexpr const char* kPositions = "positions";

common::ViewTower describe(const Tower& tower) {
  const Config& c = tower.config;
  const common::SquareView& view = tower.view;
  return {
      .width = c.hidden_size,
      .paths = {{.layout = {.view = view,
                            .sequence = {.patches = view.patches(),
                                         .class_rows = c.class_rows(),
                                         .first_patch = c.class_rows()},
                            .tokens = tower.rows(),
                            .stages = {},
                            .chunk_stages = {}},
                 .max_item_views = 1}},
      .vectors = tower.output != TowerOutput::kRows,
      .facts = {{"depth", cat(c.num_hidden_layers)},
                {"width", cat(c.hidden_size)},
                {"MLP width", cat(c.intermediate_size, c.gated_mlp ? ", gated" : "")},
                {"heads", cat(c.num_attention_heads)},
                {"registers", cat(c.num_register_tokens)},
                {"view", cat(view.side_px, "x", view.side_px, ", ", view.patches(), " patches")},
                {"vector", cat(c.hidden_size)}}};
}

/// The model, with the positions of rows that DINOv3 rotates by.
class Model final : public common::ViewModel {
 public:
  Model(std::unique_ptr<const ItemProcessor> processor, const Tower& tower, Weights weights)
      : ViewModel(describe(tower), std::move(processor)),
        tower_(tower),
        weights_(std::move(weights)) {}

  [[nodiscard]] std::vector<BufferDecl> inputs(PathId path,
                                               const GraphCapacity& capacity) const override {
    std::vector<BufferDecl> buffers = ViewModel::inputs(path, capacity);
    if (rotates()) {
      buffers.push_back({kPositions, DType::kI32, {views_of(path, capacity) * tower_.rows(), 4}});
    }
    return buffers;
  }

  void fill_inputs(PathId path, const GraphCapacity& capacity, std::span<const ItemPart> parts,
                   InputWriter& writer) const override {
    ViewModel::fill_inputs(path, capacity, parts, writer);
    if (!rotates()) return;
    const std::int64_t views = views_of(parts);
    auto* next = writer.claim(kPositions, views * tower_.rows()).as<std::int32_t>();
    for (std::int64_t view = 0; view < views; ++view) next = write_positions(next);
  }

  void forward(ExecContext& ctx, PathId path, const GraphCapacity& capacity, const NamedTensors& in,
               TensorView out) const override {
    dino::forward(ctx, tower_, weights_, view_inputs(path, capacity, in).all,
                  rotates() ? in[kPositions] : ConstTensorView{}, out);
  }

 private:
  [[nodiscard]] bool rotates() const { return tower_.config.version == Version::kV3; }

  /// The positions of a view, as forward() takes them. @return the place after them.
  std::int32_t* write_positions(std::int32_t* next) const {
    next = std::fill_n(next, tower_.config.class_rows() * 4, 0);
    const auto grid = static_cast<std::int32_t>(tower_.view.grid());
    common::for_each_patch(tower_.view, [&](std::int64_t y, std::int64_t x) {
      for (const std::int64_t at : {y, x}) *next++ = static_cast<std::int32_t>(2 * at + 1) - grid;
      for (int unused = 0; unused < 2; ++unused) *next++ = grid;
    });
    return next;
  }

  Tower tower_;
  Weights weights_;
};

template <Version kVersion>
std::unique_ptr<EncoderGraphModel> make_vectors(const checkpoint::HfConfig& files,
                                                const MediaOptions& media,
                                                common::WeightLoader& loader, TowerOutput output) {
  constexpr const char* kProcessor =
      kVersion == Version::kV3 ? "DINOv3ViTImageProcessor" : "BitImageProcessor";
  Tower tower{.config = parse_config(files, kVersion), .view = {}, .output = output};
  common::WholeImage image = common::read_whole_image(files, media, kProcessor);
  tower.view = {.side_px = image.side_px,
                .patch_px = tower.config.trained.patch_px,
                .planes = image.in_floats ? std::int64_t{media::kLevelBytes} : 1};
  FOVEA_CHECK(tower.view.grid() > 0, kCorruptData, files.directory, ": views of ", image.side_px,
              " pixels a side hold no patch of ", tower.view.patch_px);
  Weights weights = load_weights(loader, tower, image.scaling);
  auto processor = std::make_unique<common::WholeImageProcessor>(
      std::move(image), tower.view,
      common::WholeImageRows{tower.rows(), output != TowerOutput::kRows});
  return std::make_unique<Model>(std::move(processor), tower, std::move(weights));
}

template <Version kVersion>
std::unique_ptr<EncoderGraphModel> make(const checkpoint::HfConfig& files,
                                        const MediaOptions& media, common::WeightLoader& loader) {
  return make_vectors<kVersion>(files, media, loader, TowerOutput::kRows);
}

constexpr std::array<std::string_view, 2> kV2{"Dinov2Model", "Dinov2WithRegistersModel"};
constexpr std::array<std::string_view, 1> kV3{"DINOv3ViTModel"};

}  // namespace

const ModelFamily& v2_family() noexcept {
  static constexpr ModelFamily kFamily{
      .name = "dino",
      .architectures = kV2,
      .anchor_folder = "",
      .anchor_tensor = "embeddings.patch_embeddings.projection.weight",
      .make = &make<Version::kV2>,
      .make_vectors = &make_vectors<Version::kV2>};
  return kFamily;
}

const ModelFamily& v3_family() noexcept {
  static constexpr ModelFamily kFamily{.name = "dino",
                                       .architectures = kV3,
                                       .anchor_folder = "",
                                       .anchor_tensor = "embeddings.patch_embeddings.weight",
                                       .make = &make<Version::kV3>,
                                       .make_vectors = &make_vectors<Version::kV3>};
  return kFamily;
}

}  // namespace fovea::dino
