#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "fovea/tower/models/encoder_graph_model.h"

namespace fovea::test {

/// A model with two towers, put together like DeepSeek-OCR: rows of the tile grid with a newline
/// after each, then the page, then a separator. Every token has its own input row of kColumns. A
/// tile is a unit, a page is one.
class DualModel final : public EncoderGraphModel, public ItemProcessor {
 public:
  static constexpr std::int64_t kColumns = 8;
  static constexpr std::int64_t kGlobal = 272;   ///< tokens of a page
  static constexpr std::int64_t kTileSide = 10;  ///< tokens along a side of a tile
  static constexpr std::int64_t kLocal = 100;    ///< tokens of a tile

  explicit DualModel(std::int64_t max_token_budget = 13824);

  /// An image cut into w x h tiles; (1, 1) has none.
  [[nodiscard]] PreparedItem make_crop(std::int64_t w, std::int64_t h, std::uint64_t seed) const;
  /// An item of any token counts, one unit on each path: local rows, then global rows.
  [[nodiscard]] PreparedItem make_plain(std::int64_t global, std::int64_t local,
                                        std::uint64_t seed) const;
  [[nodiscard]] std::vector<float> reference(const PreparedItem& item) const;

  [[nodiscard]] const GraphSpec& graph_spec() const noexcept override { return spec_; }
  [[nodiscard]] const ItemProcessor& processor() const noexcept override { return *this; }
  [[nodiscard]] ItemPlan plan_image(std::int64_t width_px, std::int64_t height_px) const override;
  void fill_frame(const ItemPlan&, std::int64_t, const RgbView&,
                  std::span<std::uint8_t>) const override {}
  [[nodiscard]] std::int64_t path_width(PathId) const override { return kColumns; }
  [[nodiscard]] std::vector<BufferDecl> inputs(PathId path,
                                               const GraphCapacity& capacity) const override;
  void fill_inputs(PathId path, const GraphCapacity& capacity, std::span<const ItemPart> parts,
                   InputWriter& writer) const override;
  void forward(ExecContext& ctx, PathId path, const GraphCapacity& capacity, const NamedTensors& in,
               TensorView out) const override;
  void assemble(ExecContext& ctx, PathId path, TensorView rows, std::span<const ItemPart> parts,
                std::span<const TensorView> out) const override;

 private:
  GraphSpec spec_;
  std::vector<float> newline_;
  std::vector<float> separator_;
};

}  // namespace fovea::test
