// The buffers of chunks of frames: when a patch is, and which patches become one.
#include "models/common/grid/chunks.h"

#include <gtest/gtest.h>

#include "models/common/grid/moonvit.h"
#include "models/common/grid/same_size.h"
#include "models/host_inputs.h"
#include "support/expect_error.h"

namespace fovea::common {
namespace {

using ChunkInts = std::vector<std::int32_t>;

/// An image and a video of 5 frames, 8 x 8 pixels each, in patches of 4 x 4: 4 patches a frame.
class ChunkInputsTest : public ::testing::Test {
 protected:
  ChunkInputsTest() {
    GridProcessing processing = test::same_size(4);
    processing.geometry = config_.grid;
    const GridProcessor processor(processing);
    for (const ItemPlan& plan : {processor.plan_image(8, 8), processor.plan_video(5, 8, 8)}) {
      items_.push_back({.plan = plan, .pixels = std::vector<std::uint8_t>(plan.pixel_bytes)});
    }
  }
  void fill(test::HostInputs& inputs) const {
    const std::vector<ItemPart> parts = test::whole_items(items_);
    inputs.fill([&](InputWriter& writer) {
      ChunkInputs::fill(config_, runs_of(config_.grid, parts), {}, writer);
    });
  }

  const MoonVitConfig config_{
      .init_pos_emb_time = 4,
      .grid = {.patch_size = 4, .temporal_patch_size = 4, .frames = FrameUse::kTogether}};
  std::vector<PreparedItem> items_;
};

TEST_F(ChunkInputsTest, FramesOfAChunkHaveTimesAndImagesNone) {
  test::HostInputs memory(ChunkInputs::declare(config_, {.tokens = 3, .items = 2, .seqs = 9}));
  fill(memory);
  const ChunkInputs in = ChunkInputs::of(memory.tensors());
  ChunkInts frames;
  for (std::size_t patch = 0; patch < 24; patch += 4) {
    frames.push_back(test::ints(in.times, 96)[4 * patch + 1]);
  }
  EXPECT_EQ(frames, (ChunkInts{0, 1, 2, 3, 4, 0})) << "a last chunk of one frame is as an image";
  EXPECT_EQ(test::ints(in.times, 4), (ChunkInts{0, 0, 1, 5}));
}

TEST_F(ChunkInputsTest, APlaceIsTheMeanOfTheFramesThatAChunkHas) {
  test::HostInputs memory(ChunkInputs::declare(config_, {.tokens = 3, .items = 2, .seqs = 9}));
  fill(memory);
  const ChunkInputs in = ChunkInputs::of(memory.tensors());
  EXPECT_EQ(*in.places.count, 12);
  const ChunkInts means = test::ints(in.means, 48);
  EXPECT_EQ(ChunkInts(means.begin(), means.begin() + 4), (ChunkInts{0, 1, 4, 0})) << "the image";
  EXPECT_EQ(ChunkInts(means.begin() + 20, means.begin() + 24), (ChunkInts{5, 4, 4, 0}))
      << "4 frames";
  EXPECT_EQ(ChunkInts(means.begin() + 44, means.end()), (ChunkInts{23, 1, 4, 0})) << "the fifth";
}

TEST_F(ChunkInputsTest, BuffersThatAreTooSmallAreRefused) {
  test::HostInputs memory(ChunkInputs::declare(config_, {.tokens = 3, .items = 2, .seqs = 1}));
  test::expect_error(ErrorCode::kUnavailable, "times", [&] { fill(memory); });
}

}  // namespace
}  // namespace fovea::common
