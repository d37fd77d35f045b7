// A video file and its frames as pixels are the same item for every family that takes videos.
#include <gtest/gtest.h>

#include <cstdint>
#include <iterator>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/file.h"
#include "engine/prepare.h"
#include "fovea/media.h"
#include "media/video.h"
#include "models/load_model.h"
#include "support/golden.h"
#include "support/golden_videos.h"

namespace fovea {
namespace {

/// The frames that a family samples of a video, as an item of decoded pixels.
MediaItem sampled_frames(const ItemProcessor& processor, const test::GoldenVideo& video,
                         double fps) {
  const InputFile file(video.path);
  std::int64_t count = 0;
  std::vector<std::uint8_t> pixels;
  const auto sampler = [&](const media::VideoInfo& info) {
    std::vector<std::int64_t> indices = processor.sample_frames(info.num_frames, info.fps, fps);
    count = std::ssize(indices);
    return indices;
  };
  media::decode_video(
      {.file = file.descriptor(), .file_bytes = file.size_bytes(), .name = video.name}, sampler, {},
      [&](const media::Image& frame) {
        pixels.insert(pixels.end(), frame.rgb.begin(), frame.rgb.end());
      });
  return video_rgb(std::move(pixels), count, video.width_px, video.height_px, fps, video.name);
}

class GoldenVideoItems : public ::testing::TestWithParam<const char*> {};

TEST_P(GoldenVideoItems, AreThoseOfTheirFrames) {
  if (media::video_status().starts_with("not used")) GTEST_SKIP() << media::video_status();
  const MediaOptions options;
  const std::unique_ptr<EncoderGraphModel> model = plan_model(
      checkpoint::read_hf_config(test::golden_folder(GetParam(), "config.json")), options);
  DecodeBudget budget(decode_budget_bytes({}, 1));
  const PrepareContext context{*model, options, budget};
  for (const test::GoldenVideo& video : test::golden_videos()) {
    for (const double fps : {video.fps, 4.0}) {
      SCOPED_TRACE(video.name + " at " + std::to_string(fps));
      const PreparedMedia got = prepare_media(context, video_path(video.path, fps));
      ASSERT_FALSE(got.error) << got.error->what();
      const MediaItem frames = sampled_frames(model->processor(), video, fps);
      const PreparedMedia want = prepare_media(context, frames);
      ASSERT_FALSE(want.error) << want.error->what();
      EXPECT_EQ(got.item.plan.num_frames, want.item.plan.num_frames);
      EXPECT_EQ(got.item.plan.grid, want.item.plan.grid);
      EXPECT_EQ(got.item.plan.spec.out_rows, want.item.plan.spec.out_rows);
      EXPECT_TRUE(got.item.pixels == want.item.pixels);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Families, GoldenVideoItems,
                         ::testing::Values("qwen2_vl", "qwen2_5_vl", "qwen3_vl", "qwen3_5", "glm4v",
                                           "internvl", "internvl_chat"),
                         [](const auto& family) { return std::string(family.param); });

}  // namespace
}  // namespace fovea
