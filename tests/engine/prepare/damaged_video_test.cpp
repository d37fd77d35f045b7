// What becomes of an item whose video cannot be read in full.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "core/file.h"
#include "engine/prepare.h"
#include "engine/prepare/lost_frames.h"
#include "fovea/media.h"
#include "graph/recording_log.h"
#include "media/video.h"
#include "models/load_model.h"
#include "support/golden.h"

namespace fovea {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

using Bytes = std::vector<std::uint8_t>;

Bytes video(const std::string& name) {
  return read_file(std::string(FOVEA_TEST_SOURCE_DIR) + "/tests/media/videos/" + name, 1 << 20);
}

Bytes cut(const std::string& name, std::size_t tenths) {
  Bytes bytes = video(name);
  bytes.resize(bytes.size() * tenths / 10);
  return bytes;
}

/// The first frames of a file as an item of decoded pixels.
MediaItem first_frames(const Bytes& bytes, std::int64_t count) {
  Bytes pixels;
  const auto sampler = [&](const media::VideoInfo&) {
    std::vector<std::int64_t> indices(static_cast<std::size_t>(count));
    std::iota(indices.begin(), indices.end(), std::int64_t{0});
    return indices;
  };
  const media::VideoInfo info = media::decode_video(
      {.bytes = bytes, .name = "whole"}, sampler, {}, [&](const media::Image& frame) {
        pixels.insert(pixels.end(), frame.rgb.begin(), frame.rgb.end());
      });
  return video_rgb(std::move(pixels), count, info.width_px, info.height_px, 10.0, "frames");
}

class DamagedVideos : public ::testing::Test {
 protected:
  void SetUp() override {
    if (media::video_status().starts_with("not used")) GTEST_SKIP() << media::video_status();
  }
  [[nodiscard]] PreparedMedia prepare(const MediaItem& item) {
    return prepare_media({*model_, options_, budget_, nullptr, &log_}, item);
  }
  /// All frames of a container.
  [[nodiscard]] PreparedMedia prepare(Bytes bytes) {
    return prepare(video_bytes(std::move(bytes), "clip", 10.0));
  }
  void expect_frames(const PreparedMedia& got, const MediaItem& frames) {
    ASSERT_FALSE(got.error) << got.error->what();
    const PreparedMedia want = prepare(frames);
    ASSERT_FALSE(want.error) << want.error->what();
    EXPECT_EQ(got.item.plan.num_frames, want.item.plan.num_frames);
    EXPECT_EQ(got.item.plan.grid, want.item.plan.grid);
    EXPECT_TRUE(got.item.pixels == want.item.pixels);
  }
  [[nodiscard]] std::vector<std::string> logged() const {
    std::vector<std::string> lines;
    for (const auto& [level, line] : log_.lines) {
      EXPECT_EQ(level, LogLevel::kWarning);
      lines.push_back(line);
    }
    return lines;
  }

  MediaOptions options_;
  std::unique_ptr<EncoderGraphModel> model_ = plan_model(
      checkpoint::read_hf_config(test::golden_folder("qwen3_vl", "golden.safetensors")), {});
  DecodeBudget budget_{decode_budget_bytes({}, 1)};
  test::RecordingLog log_;
};

TEST_F(DamagedVideos, AreEncodedFromTheFramesThatCanBeReadWithOneWarning) {
  const PreparedMedia got = prepare(cut("ramp_h264.mp4", 8));
  expect_frames(got, first_frames(video("ramp_h264.mp4"), 8));
  EXPECT_THAT(logged(), ElementsAre("video.frames_lost item=\"clip\" frames=\"6,9..24\" "
                                    "seconds=\"0.6,0.9..2.4\" used=8 of=25"));
}

// Frames 0 to 5, 7 and 8 at ten per second, two of which make a temporal patch.
TEST_F(DamagedVideos, KeepTheTimesOfTheirFrames) {
  const PreparedMedia got = prepare(cut("ramp_h264.mp4", 8));
  ASSERT_EQ(got.timestamps.size(), 4);
  EXPECT_DOUBLE_EQ(got.timestamps[0], 0.05);
  EXPECT_DOUBLE_EQ(got.timestamps[2], 0.45);
  EXPECT_DOUBLE_EQ(got.timestamps[3], 0.75);
}

TEST_F(DamagedVideos, WhoseEndIsMissingAreWarnedOf) {
  const PreparedMedia got = prepare(cut("ramp_vp9.webm", 6));
  expect_frames(got, first_frames(video("ramp_vp9.webm"), 10));
  EXPECT_THAT(logged(), ElementsAre("video.frames_lost item=\"clip\" frames=\"10..24\" "
                                    "seconds=\"1..2.4\" used=10 of=25"));
}

TEST_F(DamagedVideos, AreRefusedOnRequest) {
  options_.damaged_frames = DamagedFrames::kRefuse;
  const PreparedMedia frame = prepare(cut("ramp_h264.mp4", 8));
  ASSERT_TRUE(frame.error);
  EXPECT_EQ(frame.error->code(), ErrorCode::kCorruptData);
  EXPECT_THAT(frame.error->what(), HasSubstr("clip: frame 6 cannot be decoded"));
  const PreparedMedia end = prepare(cut("ramp_vp9.webm", 6));
  ASSERT_TRUE(end.error);
  EXPECT_EQ(end.error->code(), ErrorCode::kCorruptData);
  EXPECT_STREQ(end.error->what(),
               "clip: expected 25 frames by the duration in its header, found 10");
  EXPECT_FALSE(prepare(video("ramp_h264.mp4")).error);
  EXPECT_TRUE(logged().empty());
}

TEST_F(DamagedVideos, WithoutAFrameThatCanBeReadAreOneError) {
  const PreparedMedia got = prepare(cut("ramp_h264.mp4", 6));
  ASSERT_TRUE(got.error);
  EXPECT_THAT(got.error->what(), HasSubstr("clip: frame 0 cannot be decoded"));
  EXPECT_TRUE(logged().empty());
}

TEST_F(DamagedVideos, WholeOnesAreNotWarnedOf) {
  EXPECT_FALSE(prepare(video("ramp_h264.mp4")).error);
  EXPECT_TRUE(logged().empty());
}

TEST(LostFramesLine, CountsRunsBehindTheEighth) {
  media::VideoInfo info{.num_frames = 40};
  for (std::int64_t i = 0; i < 20; ++i) info.unreadable.push_back(2 * i);
  EXPECT_EQ(lost_frames_line("clip", info, 20),
            "video.frames_lost item=\"clip\" frames=\"0,2,4,6,8,10,12,14,and 12 more\" used=20 "
            "of=40");
}

}  // namespace
}  // namespace fovea
