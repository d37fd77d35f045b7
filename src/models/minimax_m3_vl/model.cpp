// MiniMax-M3 behind the model protocol. Source: docs/reference/minimax_m3_vl.md, "Encoder graphs".
#include "models/minimax_m3_vl/model.h"

#include <algorithm>
#include <array>
#include <memory>
#include <utility>
#include <vector>

#include "core/check.h"
#include "models/common/grid/model.h"
#include "models/minimax_m3_vl/processor.h"

namespace fovea::minimax_m3_vl {

namespace {

constexpr std::array<std::string_view, 1> kArchitectures{"MiniMaxM3SparseForConditionalGeneration"};

common::GridTower describe(const Config& c, std::int64_t segment) {
  return {.main_width = c.text_hidden_size,
          .out_width = c.text_hidden_size,
          .attention_parity_rows = common::attention_parity(c.hidden_size, c.intermediate_size),
          .facts = common::transformer_facts(
              c, {{"vision_segment_max_frames", segment == 0 ? "null" : cat(segment)}})};
}

class Model final : public common::GridModel {
 public:
  Model(const Config& config, std::unique_ptr<const Processor> processor, common::GridTower tower,
        Weights weights)
      : GridModel(std::move(tower), std::move(processor)),
        segments_(static_cast<const Processor&>(this->processor())),
        config_(config),
        weights_(std::move(weights)) {}

  void fill_inputs(PathId, const GraphCapacity&, std::span<const ItemPart> parts,
                   InputWriter& writer) const override {
    std::vector<common::GridRun> runs;  // a segment each
    for (const ItemPart& part : parts) append(part, runs);
    const common::PatchTables rows = common::GridInputs::fill(config_.grid, runs, writer);
    auto* position = rows.positions.data();
    for (const common::GridRun& run : runs) {
      const std::int64_t frame = run.plan.grid[1] * run.plan.grid[2];
      for (std::int64_t row = 0; row < run.patches; ++row, position += 4) {
        position[2] = static_cast<std::int32_t>(row / frame);  // the height has no reader
      }
    }
  }
  void forward(ExecContext& ctx, PathId, const GraphCapacity&, const NamedTensors& in,
               TensorView out) const override {
    minimax_m3_vl::forward(ctx, config_, weights_, common::GridInputs::of(in), out);
  }

 private:
  /// The segments of whole units.
  void append(const ItemPart& part, std::vector<common::GridRun>& runs) const {
    const ItemPlan& plan = part.plan();
    const std::int64_t frame = plan.grid[1] * plan.grid[2];
    const std::int64_t segment = segments_.segment_of(plan) * frame;
    const std::int64_t patches = part.patches();
    std::span<const std::uint8_t> pixels = part.pixels();
    // Bytes of a temporal patch; a last one of an odd frame has fewer.
    const std::size_t frame_bytes = pixel_bytes_of_frames(plan);
    for (std::int64_t first = 0; first < patches; first += segment) {
      const std::int64_t count = std::min(segment, patches - first);
      const std::size_t bytes =
          std::min(pixels.size(), frame_bytes * static_cast<std::size_t>(count / frame));
      runs.push_back({plan, pixels.first(bytes), count});
      pixels = pixels.subspan(bytes);
    }
  }
  [[nodiscard]] std::size_t pixel_bytes_of_frames(const ItemPlan& plan) const {
    const std::int64_t frames = std::min(config_.grid.temporal_patch_size, plan.num_frames);
    return plan.pixel_bytes / static_cast<std::size_t>(plan.num_frames) *
           static_cast<std::size_t>(frames);
  }

  const Processor& segments_;  // that of GridModel
  Config config_;
  Weights weights_;
};

std::unique_ptr<EncoderGraphModel> make(const checkpoint::HfConfig& files,
                                        const MediaOptions& media, common::WeightLoader& loader) {
  const Config config = parse_config(files);
  Processing processing = read_processing(files, config, media);
  Weights weights = load_weights(loader, config, processing.grid.scaling.table());
  common::GridTower tower = describe(config, processing.vision_segment_max_frames);
  return std::make_unique<Model>(config, std::make_unique<Processor>(std::move(processing)),
                                 std::move(tower), std::move(weights));
}

/// As transformers names its modules. Source: transformers 5.24, conversion_mapping.py.
constexpr std::array<common::RenamedPart, 4> kModules{{
    {"vision_tower.vision_model.embeddings.patch_embedding", "vision_tower.embeddings.proj"},
    {"vision_tower.vision_model.encoder.", "vision_tower."},
    {"vision_tower.vision_model.", "vision_tower."},
    {"patch_merge_mlp.", "multi_modal_projector.merge_"},
}};
constexpr std::array<common::OtherNames, 1> kOtherNames{{
    {"", "vision_tower.embeddings.proj.weight", kModules},
}};

}  // namespace

const ModelFamily& family() noexcept {
  static constexpr ModelFamily kFamily{
      .name = "minimax_m3_vl",
      .architectures = kArchitectures,
      .anchor_folder = "",
      .anchor_tensor = "vision_tower.vision_model.embeddings.patch_embedding.weight",
      .make = &make,
      .other_names = kOtherNames};
  return kFamily;
}

}  // namespace fovea::minimax_m3_vl
