// Finding images by asking the model.
#include "graph/capture/image_search.h"

#include <gtest/gtest.h>

#include "core/check.h"
#include "graph/dual_model.h"
#include "graph/mock_model.h"
#include "support/expect_error.h"

namespace fovea {
namespace {

using test::DualModel;
using test::Grid;
using test::MockModel;

std::int64_t tokens(const ItemPlan& plan) { return plan.spec.path_tokens[0]; }
std::int64_t tiles(const ItemPlan& plan) { return plan.spec.path_tokens[1] / DualModel::kLocal; }
std::int64_t patches(const ItemPlan& plan) { return plan.spec.input_rows; }

TEST(ImageSearch, FindsEveryNumberOfTokensOfAGrid) {
  const MockModel model;
  for (std::int64_t wanted = 1; wanted <= 200; ++wanted) {
    const NearestImages images = find_images(model, wanted, tokens);
    ASSERT_TRUE(images.up_to) << wanted;
    EXPECT_EQ(tokens(*images.up_to), wanted);
  }
}

TEST(ImageSearch, TakesTheMostSquareImageAndTheSmallestSource) {
  const MockModel model;  // a token is 2 x 2 pixels
  const auto grid_of = [&](std::int64_t wanted) {
    return find_images(model, wanted, tokens).up_to->grid;
  };
  EXPECT_EQ(grid_of(64), (Grid{1, 16, 16}));
  EXPECT_EQ(grid_of(440), (Grid{1, 40, 44}));
  EXPECT_EQ(grid_of(17), (Grid{1, 2, 34}));
}

TEST(ImageSearch, SaysWhichCountsLieOnBothSides) {
  const MockModel model;  // four patches a token
  const NearestImages images = find_images(model, 7, patches);
  EXPECT_EQ(patches(*images.up_to), 4);
  EXPECT_EQ(patches(*images.above), 8);
}

TEST(ImageSearch, FindsNoImageBelowTheSmallest) {
  const DualModel model;  // no tile or at least two
  const NearestImages images = find_images(model, 1, tiles);
  EXPECT_FALSE(images.up_to);
  ASSERT_TRUE(images.above);
  EXPECT_GT(tiles(*images.above), 1);
}

/// Takes images of one size class only: refuses small sides, shrinks large ones.
class BoundedModel final : public EncoderGraphModel, public ItemProcessor {
 public:
  [[nodiscard]] const GraphSpec& graph_spec() const noexcept override {
    return inner_.graph_spec();
  }
  [[nodiscard]] const ItemProcessor& processor() const noexcept override { return *this; }
  [[nodiscard]] ItemPlan plan_image(std::int64_t width_px, std::int64_t height_px) const override {
    FOVEA_CHECK(height_px >= 10 && width_px <= 4 * height_px, kInvalidArgument, "too thin");
    return inner_.plan_image(std::min<std::int64_t>(width_px, 30),
                             std::min<std::int64_t>(height_px, 30));
  }
  void fill_frame(const ItemPlan&, std::int64_t, const RgbView&,
                  std::span<std::uint8_t>) const override {}
  [[nodiscard]] std::int64_t path_width(PathId path) const override {
    return inner_.path_width(path);
  }
  [[nodiscard]] std::vector<BufferDecl> inputs(PathId path,
                                               const GraphCapacity& capacity) const override {
    return inner_.inputs(path, capacity);
  }
  void fill_inputs(PathId, const GraphCapacity&, std::span<const ItemPart>,
                   InputWriter&) const override {}
  void forward(ExecContext&, PathId, const GraphCapacity&, const NamedTensors&,
               TensorView) const override {}

 private:
  MockModel inner_;
};

TEST(ImageSearch, StaysWithinTheLimitsOfTheModel) {
  const BoundedModel model;
  EXPECT_FALSE(find_images(model, 24, tokens).up_to);  // 5 x 5 tokens are the least
  EXPECT_GE(tokens(*find_images(model, 24, tokens).above), 25);
  EXPECT_EQ(tokens(*find_images(model, 1000, tokens).up_to), 15 * 15);
  EXPECT_FALSE(find_images(model, 1000, tokens).above);
}

TEST(ImageSearch, NeedsSomethingToLookFor) {
  test::expect_error(ErrorCode::kInternal, "at least 1, got 0",
                     [] { (void)find_images(MockModel(), 0, tokens); });
}

}  // namespace
}  // namespace fovea
