// A tower with a mistake, which the file `mistake` beside config.json names: what an engine says of
// towers that break their promises.
#include <fovea/tower.h>

#include <fstream>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

namespace {

constexpr std::int64_t kWidth = 8;
constexpr std::int64_t kRows = 4;  // of an image, whatever its size

class Odd final : public fovea::EncoderGraphModel, public fovea::ItemProcessor {
 public:
  explicit Odd(std::string mistake) : mistake_(std::move(mistake)) {
    spec_.main_width = mistake_ == "no width" ? 0 : kWidth;
    spec_.out_width = mistake_ == "half an embedding" ? kWidth + kWidth / 2 : kWidth;
    if (mistake_ == "wide items") spec_.out_width = 2 * kWidth;
    if (mistake_ != "no modality") spec_.modalities = {fovea::Modality::kImage};
    if (mistake_ == "no unit") spec_.paths[0].unit = 0;
  }

  [[nodiscard]] const fovea::GraphSpec& graph_spec() const noexcept override { return spec_; }
  [[nodiscard]] const fovea::ItemProcessor& processor() const noexcept override { return *this; }
  [[nodiscard]] fovea::ItemPlan plan_image(std::int64_t width_px,
                                           std::int64_t height_px) const override {
    if (mistake_ == "a number from a plan") throw 42;
    fovea::ItemPlan plan;
    plan.source_width_px = width_px;
    plan.source_height_px = height_px;
    plan.pixel_bytes = kRows;
    plan.spec = {.input_rows = kRows, .out_rows = kRows, .num_seqs = 1, .path_tokens = {kRows}};
    if (mistake_ == "negative rows") plan.spec.out_rows = -5;
    if (mistake_ == "negative tokens") plan.spec.path_tokens[0] = -7;
    if (mistake_ == "units of other rows") plan.spec.units[0] = {3, 1, 7};
    if (mistake_ == "units of other patches") plan.spec.units[0] = {2, 5, 2};
    if (mistake_ == "units behind the pixels") {
      plan.spec.units[0] = {2, 2, 2};
      plan.unit_bytes[0] = 100;
    }
    return plan;
  }
  void fill_frame(const fovea::ItemPlan&, std::int64_t, const fovea::RgbView&,
                  std::span<std::uint8_t>) const override {}
  [[nodiscard]] std::int64_t path_width(fovea::PathId) const override { return kWidth; }
  [[nodiscard]] std::vector<fovea::BufferDecl> inputs(fovea::PathId,
                                                      const fovea::GraphCapacity&) const override {
    return {{"live", fovea::DType::kI32, {1}}};
  }
  void fill_inputs(fovea::PathId, const fovea::GraphCapacity&, std::span<const fovea::ItemPart>,
                   fovea::InputWriter& writer) const override {
    *writer.claim("live", 1).as<std::int32_t>() = 1;
  }
  void forward(fovea::ExecContext&, fovea::PathId, const fovea::GraphCapacity&,
               const fovea::NamedTensors&, fovea::TensorView) const override {
    if (mistake_ == "a number from a forward") throw 42;
  }

 private:
  std::string mistake_;
  fovea::GraphSpec spec_;
};

std::unique_ptr<fovea::EncoderGraphModel> make(const std::string& directory,
                                               const fovea::MediaOptions&, fovea::TowerWeights&) {
  std::ifstream file(directory + "/mistake");
  std::string mistake;
  std::getline(file, mistake);
  if (mistake == "a number from its maker") throw 42;
  return std::make_unique<Odd>(mistake);
}

constexpr fovea::TowerLibrary kTower{.name = "Odd", .make = &make};

[[gnu::section(".note.fovea"), gnu::aligned(4), gnu::used]] constexpr fovea::PluginNote kNote =
    fovea::kTowerNote;

}  // namespace

extern "C" [[gnu::visibility("default")]] const fovea::TowerLibrary* fovea_tower() {
  return &kTower;
}
