#pragma once

#include <fovea/tower.h>

#include <cstdint>
#include <span>
#include <vector>

/// A plain vision transformer: patches, learned positions, pre-norm blocks, a projector. An image
/// keeps its shape and becomes a row per patch, kMaxSide * kMaxSide at most.
namespace vit {

inline constexpr std::int64_t kPatch = 16;    // pixels
inline constexpr std::int64_t kMaxSide = 8;   // of an image, in patches
inline constexpr std::int64_t kHidden = 128;  // columns inside the tower
inline constexpr std::int64_t kHeads = 2;
inline constexpr std::int64_t kWide = 256;  // columns inside an MLP
inline constexpr std::int64_t kOut = 192;   // columns of a row
inline constexpr std::int64_t kBlocks = 3;
inline constexpr float kEpsilon = 1e-6f;

/// The host side: sizes by integer arithmetic, then pixels.
class Processor final : public fovea::ItemProcessor {
 public:
  [[nodiscard]] fovea::ItemPlan plan_image(std::int64_t width_px,
                                           std::int64_t height_px) const override;
  void fill_frame(const fovea::ItemPlan& plan, std::int64_t index, const fovea::RgbView& frame,
                  std::span<std::uint8_t> out) const override;
};

struct Norm {
  fovea::Tensor weight;
  fovea::Tensor bias;
};

struct Mlp {
  fovea::ops::PackedLinear fc1;
  fovea::ops::PackedLinear fc2;
};

struct Block {
  Norm norm1;
  fovea::ops::PackedLinear qkv;
  fovea::ops::PackedLinear proj;
  Norm norm2;
  Mlp mlp;
};

class Model final : public fovea::EncoderGraphModel {
 public:
  /// Asks for the weights, which are looked up alone where a checkpoint is checked.
  explicit Model(fovea::TowerWeights& weights);

  [[nodiscard]] const fovea::GraphSpec& graph_spec() const noexcept override { return spec_; }
  [[nodiscard]] const fovea::ItemProcessor& processor() const noexcept override {
    return processor_;
  }
  [[nodiscard]] std::int64_t path_width(fovea::PathId) const override { return kOut; }
  [[nodiscard]] std::vector<fovea::BufferDecl> inputs(
      fovea::PathId path, const fovea::GraphCapacity& capacity) const override;
  void fill_inputs(fovea::PathId path, const fovea::GraphCapacity& capacity,
                   std::span<const fovea::ItemPart> parts,
                   fovea::InputWriter& writer) const override;
  void forward(fovea::ExecContext& ctx, fovea::PathId path, const fovea::GraphCapacity& capacity,
               const fovea::NamedTensors& in, fovea::TensorView out) const override;

 private:
  fovea::GraphSpec spec_;
  Processor processor_;
  fovea::Tensor normalize_;  // [3, 256] f32: value of every byte per channel
  fovea::ops::PackedLinear patch_;
  fovea::Tensor positions_;  // [kMaxSide^2, kHidden] f32
  std::vector<Block> blocks_;
  Norm last_norm_;
  Mlp projector_;
};

}  // namespace vit
