// Which tokens of two frames become one.
#include "models/ernie4_5_vl/pairs.h"

#include <gtest/gtest.h>

#include "models/common/grid/same_size.h"
#include "models/host_inputs.h"
#include "support/expect_error.h"

namespace fovea::ernie4_5_vl {
namespace {

using Ints = std::vector<std::int32_t>;

/// An image and a video of 3 frames, 16 x 8 and 8 x 8 pixels, in patches of 4 x 4: 2 tokens, and 1
/// of each frame.
class PairInputsTest : public ::testing::Test {
 protected:
  PairInputsTest() {
    common::GridProcessing processing = test::same_size(4);
    processing.geometry = config_.grid;
    const common::GridProcessor processor(processing);
    for (const ItemPlan& plan : {processor.plan_image(16, 8), processor.plan_video(3, 8, 8)}) {
      items_.push_back({.plan = plan, .pixels = std::vector<std::uint8_t>(plan.pixel_bytes)});
    }
  }
  void fill(test::HostInputs& inputs) const {
    const std::vector<ItemPart> parts = test::whole_items(items_);
    inputs.fill([&](InputWriter& writer) {
      PairInputs::fill(config_, common::runs_of(config_.grid, parts), {}, writer);
    });
  }

  const Config config_{
      .grid = {.patch_size = 4, .temporal_patch_size = 2, .frames = common::FrameUse::kApart}};
  std::vector<PreparedItem> items_;
};

TEST_F(PairInputsTest, JoinNeighboursInTimeAndASingleFrameWithItself) {
  test::HostInputs memory(PairInputs::declare(config_, {.tokens = 4, .items = 2, .seqs = 5}));
  fill(memory);
  const PairInputs in = PairInputs::of(memory.tensors());
  EXPECT_EQ(*in.joined.count, 5);
  EXPECT_EQ(*in.halves.count, 8);
  EXPECT_EQ(test::ints(in.pairs, 8), (Ints{0, 0, 1, 1, 2, 3, 4, 4}));
}

TEST_F(PairInputsTest, BuffersThatAreTooSmallAreRefused) {
  test::HostInputs memory(PairInputs::declare(config_, {.tokens = 3, .items = 2, .seqs = 5}));
  test::expect_error(ErrorCode::kUnavailable, "pairs", [&] { fill(memory); });
}

}  // namespace
}  // namespace fovea::ernie4_5_vl
