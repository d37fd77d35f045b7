// Videos of which some frames cannot be read. Numbers of frames that are lost are those that vLLM
// 0.33 loses of the same bytes (OpenCV 5.0.0.93).
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

#include "core/file.h"
#include "matroska.h"
#include "media/video.h"
#include "support/expect_error.h"
#include "test_images.h"

namespace fovea::media {
namespace {

using Indices = std::vector<std::int64_t>;
using test::Bytes;

Bytes video(const std::string& name) {
  return read_file(std::string(FOVEA_TEST_SOURCE_DIR) + "/tests/media/videos/" + name, 1 << 20);
}

Indices from_to(std::int64_t first, std::int64_t last) {
  Indices indices;
  for (std::int64_t i = first; i <= last; ++i) indices.push_back(i);
  return indices;
}

/// What comes of a video whose frames are all chosen, and then all that can be read.
struct Outcome {
  VideoInfo info;
  int times_asked = 0;
  std::vector<Image> frames;
};

Outcome decode_readable(const Bytes& bytes, const MediaLimits& limits = {}) {
  Outcome outcome;
  const auto sampler = [&](const VideoInfo& info) {
    ++outcome.times_asked;
    outcome.frames.clear();
    Indices chosen = from_to(0, info.num_frames - 1);
    std::erase_if(chosen, [&](std::int64_t index) {
      return std::ranges::binary_search(info.unreadable, index);
    });
    return chosen.empty() ? from_to(0, info.num_frames - 1) : chosen;
  };
  outcome.info = decode_video({.bytes = bytes, .name = "clip"}, sampler, limits,
                              [&](const Image& frame) { outcome.frames.push_back(frame); });
  return outcome;
}

/// Frames of a whole file, for comparison.
std::vector<Image> frames_of(const Bytes& bytes, const Indices& indices) {
  std::vector<Image> frames;
  decode_video(
      {.bytes = bytes, .name = "whole"}, [&](const VideoInfo&) { return indices; }, {},
      [&](const Image& frame) { frames.push_back(frame); });
  return frames;
}

void expect_equal(const std::vector<Image>& got, const std::vector<Image>& want) {
  ASSERT_EQ(got.size(), want.size());
  for (std::size_t i = 0; i < want.size(); ++i) EXPECT_TRUE(got[i].rgb == want[i].rgb) << i;
}

/// ramp_h264.mp4 with zeros instead of the packet of `size` bytes at `at`.
Bytes ramp_without(std::size_t at, std::size_t size) {
  Bytes bytes = video("ramp_h264.mp4");
  std::fill_n(bytes.begin() + static_cast<std::ptrdiff_t>(at), size, std::uint8_t{0});
  return bytes;
}

class DamagedVideoTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (video_status().starts_with("not used")) GTEST_SKIP() << video_status();
  }
};

Bytes grey_png(std::uint16_t level) {
  return test::encode_png({.width = 16, .height = 16, .color = test::PngColor::kGrey},
                          std::vector<std::uint16_t>(16 * 16, level));
}

/// Three frames of grey, the second of which is damaged.
Bytes three_frames() {
  constexpr std::string_view kPixels = "IDAT";
  Bytes damaged = grey_png(100);
  const auto at = std::search(damaged.begin(), damaged.end(), kPixels.begin(), kPixels.end());
  std::fill_n(at + std::ssize(kPixels), 8, std::uint8_t{255});
  const std::vector<Bytes> packets{grey_png(50), damaged, grey_png(150)};
  return test::matroska_of_png(16, 16, packets);
}

TEST_F(DamagedVideoTest, AFrameThatCannotBeDecodedIsChosenNoMore) {
  const Outcome outcome = decode_readable(three_frames());
  EXPECT_EQ(outcome.times_asked, 2);
  EXPECT_EQ(outcome.info.num_frames, 3);
  EXPECT_EQ(outcome.info.unreadable, Indices{1});
  ASSERT_EQ(outcome.frames.size(), 2);
  EXPECT_EQ(outcome.frames[0].rgb[0], 50);
  EXPECT_EQ(outcome.frames[1].rgb[0], 150);
}

TEST_F(DamagedVideoTest, AFrameThatNobodyChoseIsNoLoss) {
  int times_asked = 0;
  const Bytes bytes = three_frames();
  const VideoInfo info = decode_video(
      {.bytes = bytes, .name = "clip"},
      [&](const VideoInfo&) {
        ++times_asked;
        return Indices{0, 2};
      },
      {}, [](const Image&) {});
  EXPECT_EQ(times_asked, 1);
  EXPECT_TRUE(info.unreadable.empty());
}

TEST_F(DamagedVideoTest, WhoInsistsOnALostFrameIsToldWhyItIs) {
  const Bytes bytes = three_frames();
  test::expect_error(ErrorCode::kCorruptData, "clip: frame 1 cannot be decoded", [&] {
    (void)decode_video(
        {.bytes = bytes, .name = "clip"},
        [](const VideoInfo&) {
          return Indices{1, 2};
        },
        {}, [](const Image&) {});
  });
}

TEST_F(DamagedVideoTest, NothingThatCanBeReadIsAnError) {
  const std::vector<Bytes> packets{Bytes(40, 1), Bytes(40, 2)};
  const Bytes bytes = test::matroska_of_png(16, 16, packets);
  test::expect_error(ErrorCode::kCorruptData, "clip: frame 0 cannot be decoded",
                     [&] { (void)decode_readable(bytes); });
}

// The fourth packet shows frame 1, which others do not refer to.
TEST_F(DamagedVideoTest, ADamagedPacketCostsItsFrameAlone) {
  const Bytes whole = video("ramp_h264.mp4");
  const Outcome outcome = decode_readable(ramp_without(1985, 13));
  EXPECT_EQ(outcome.info.num_frames, 25);
  EXPECT_EQ(outcome.info.unreadable, Indices{1});
  Indices others = from_to(2, 24);
  others.insert(others.begin(), 0);
  expect_equal(outcome.frames, frames_of(whole, others));
}

TEST_F(DamagedVideoTest, AnMp4FileThatIsCutHasTheFramesThatItsHeaderLists) {
  Bytes bytes = video("ramp_h264.mp4");
  const Bytes whole = bytes;
  bytes.resize(bytes.size() * 8 / 10);
  const Outcome outcome = decode_readable(bytes);
  EXPECT_EQ(outcome.info.num_frames, 25);
  Indices lost = from_to(9, 24);
  lost.insert(lost.begin(), 6);  // the packet in which the file ends
  EXPECT_EQ(outcome.info.unreadable, lost);
  expect_equal(outcome.frames, frames_of(whole, from_to(0, 7)));
}

TEST_F(DamagedVideoTest, OtherFilesThatAreCutHaveTheFramesThatAreThere) {
  Bytes bytes = video("ramp_vp9.webm");
  const Bytes whole = bytes;
  bytes.resize(bytes.size() * 6 / 10);
  const Outcome webm = decode_readable(bytes);
  EXPECT_EQ(webm.info.num_frames, 10);
  EXPECT_EQ(webm.info.num_cut, 15) << "by the duration in its header";
  EXPECT_TRUE(webm.info.unreadable.empty());
  expect_equal(webm.frames, frames_of(whole, from_to(0, 9)));
  bytes = video("ramp_h264.ts");
  bytes.resize(bytes.size() * 6 / 10);
  const Outcome stream = decode_readable(bytes);
  EXPECT_EQ(stream.info.num_frames, 14);
  EXPECT_EQ(stream.info.num_cut, 0);
}

TEST_F(DamagedVideoTest, WholeFilesLackNothing) {
  for (const char* name : {"ramp_h264.mp4", "ramp_cut.mp4", "ramp_vp9.webm", "ramp_h264.ts",
                           "ramp_theora.ogv", "chroma_full_406x8.webm", "chroma_full_163x9.avi"}) {
    SCOPED_TRACE(name);
    const Outcome outcome = decode_readable(video(name));
    EXPECT_EQ(outcome.times_asked, 1);
    EXPECT_TRUE(outcome.info.unreadable.empty());
    EXPECT_EQ(outcome.info.num_cut, 0);
  }
}

/// ramp_vp9.webm, which begins 250 ms later. Its duration is the time of its end, as FFmpeg writes
/// it.
Bytes late_ramp() {
  constexpr std::size_t kDurationAt = 256;  // 2500.0 in 8 bytes
  constexpr std::size_t kClusterTimeAt = 484;
  Bytes bytes = video("ramp_vp9.webm");
  bytes[kDurationAt + 1] = 0xA5;  // 2750.0
  bytes[kDurationAt + 2] = 0x7C;
  bytes[kClusterTimeAt] = 250;
  return bytes;
}

TEST_F(DamagedVideoTest, AFileThatBeginsLateLacksNothing) {
  EXPECT_EQ(decode_readable(late_ramp()).info.num_cut, 0);
  Bytes cut = late_ramp();
  cut.resize(cut.size() * 6 / 10);
  EXPECT_EQ(decode_readable(cut).info.num_cut, 15);
}

// The eighth packet of ramp_vp8.webm is not shown. Encoders store frames of the future in this way.
TEST_F(DamagedVideoTest, AHiddenFrameOfVp8IsNoLoss) {
  const Outcome outcome = decode_readable(video("ramp_vp8.webm"));
  EXPECT_EQ(outcome.info.num_frames, 24);
  EXPECT_EQ(outcome.times_asked, 1);
  ASSERT_EQ(outcome.frames.size(), 24);
  const auto level = [&](std::size_t frame) { return int{outcome.frames[frame].rgb.back()}; };
  EXPECT_NEAR(level(6), 60, 3);
  EXPECT_NEAR(level(7), 80, 3);
  EXPECT_NEAR(level(23), 240, 3);
}

// Its first key frame is frame 12.
TEST_F(DamagedVideoTest, ATransportStreamBeginsWithItsFirstKeyFrame) {
  constexpr std::ptrdiff_t kSecondFrame = 8 * 188;
  const Bytes whole = video("ramp_h264.ts");
  const Outcome outcome = decode_readable({whole.begin() + kSecondFrame, whole.end()});
  EXPECT_EQ(outcome.info.num_frames, 13);
  EXPECT_TRUE(outcome.info.unreadable.empty());
  expect_equal(outcome.frames, frames_of(whole, from_to(12, 24)));
}

// Its first block, whose frame the next ones refer to, is nothing.
TEST_F(DamagedVideoTest, MatroskaBeginsWithItsFirstKeyFrame) {
  constexpr std::size_t kFirstBlockAt = 380;
  constexpr std::uint8_t kVoid = 0xEC;
  Bytes bytes = video("ramp_vp8.webm");
  const std::vector<Image> whole = decode_readable(bytes).frames;
  bytes[kFirstBlockAt] = kVoid;
  const Outcome outcome = decode_readable(bytes);
  EXPECT_EQ(outcome.info.num_frames, 13);
  EXPECT_EQ(outcome.times_asked, 1);
  expect_equal(outcome.frames, {whole.end() - 13, whole.end()});
}

// Four packets are in front of its first key frame. FFmpeg 8 leaves them out, in PyAV 18 and in
// OpenCV 5, but OpenCV counts them.
TEST_F(DamagedVideoTest, AnMp4FileOfH265LosesAsManyFramesAsAreBeforeItsFirstKeyFrame) {
  const Outcome outcome = decode_readable(video("ramp_h265_cut.mp4"));
  EXPECT_EQ(outcome.info.num_frames, 10);
  EXPECT_EQ(outcome.info.unreadable, from_to(6, 9));
  ASSERT_EQ(outcome.frames.size(), 6);
  for (int i = 0; i < 6; ++i)
    EXPECT_NEAR(outcome.frames[static_cast<std::size_t>(i)].rgb.back(), 48 + 8 * i, 3) << i;
}

TEST_F(DamagedVideoTest, ALimitOnMemoryIsNoDamage) {
  const MediaLimits exact{.max_item_bytes = frame_bytes(96, 64)};
  test::expect_error(ErrorCode::kInvalidArgument, "max_item_bytes",
                     [&] { (void)decode_readable(video("ramp_h264.mp4"), exact); });
}

}  // namespace
}  // namespace fovea::media
