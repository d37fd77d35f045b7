// Sampling and decoding video containers. The test videos have 25 frames at 10 per second; frame i
// is grey 10 * i with a red square in its top left corner.
#include "media/video.h"

#include <gtest/gtest.h>

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <fstream>
#include <stop_token>

#include "core/file.h"
#include "core/interrupt.h"
#include "fovea/error.h"
#include "matroska.h"
#include "media/decode_image.h"
#include "support/expect_error.h"
#include "support/temporary_directory.h"
#include "test_images.h"

namespace fovea::media {
namespace {

std::vector<std::uint8_t> video(const std::string& name) {
  return read_file(std::string(FOVEA_TEST_SOURCE_DIR) + "/tests/media/videos/" + name, 1 << 20);
}

constexpr std::array kRamps{"ramp_h264.mp4", "ramp_vp9.webm", "ramp_h264.ts", "ramp_theora.ogv"};

EncodedVideo in_memory(std::span<const std::uint8_t> bytes, std::string_view name = "clip") {
  return {.bytes = bytes, .name = name};
}

/// All sampled frames of a video.
std::vector<Image> decode_all(const EncodedVideo& video, const FrameSampler& sampler,
                              const MediaLimits& limits = {}) {
  std::vector<Image> frames;
  decode_video(video, sampler, limits, [&](const Image& frame) { frames.push_back(frame); });
  return frames;
}

FrameSampler always(const std::vector<std::int64_t>& indices) {
  return [indices](const VideoInfo&) { return indices; };
}

std::array<int, 3> pixel(const Image& image, std::int64_t x, std::int64_t y) {
  const auto at = static_cast<std::size_t>((y * image.width_px + x) * 3);
  return {image.rgb[at], image.rgb[at + 1], image.rgb[at + 2]};
}

/// Lossy coding at high quality moves flat grey by a level or two.
void expect_grey(const Image& image, int level) {
  for (const int channel : pixel(image, 60, 40)) EXPECT_NEAR(channel, level, 3);
}

class VideoTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (video_status().starts_with("not used"))
      GTEST_SKIP() << "no video plugin: " << video_status();
  }
};

TEST_F(VideoTest, DescribesTheStreamToTheSampler) {
  for (const char* name : kRamps) {
    SCOPED_TRACE(name);
    VideoInfo seen;
    const auto bytes = video(name);
    (void)decode_all(in_memory(bytes), [&](const VideoInfo& info) {
      seen = info;
      return std::vector<std::int64_t>{0};
    });
    EXPECT_EQ(seen.num_frames, 25);
    EXPECT_NEAR(seen.fps, 10.0, 0.01);
    EXPECT_EQ(seen.width_px, 96);
    EXPECT_EQ(seen.height_px, 64);
    EXPECT_EQ(seen.decode_bytes, frame_bytes(96, 64));
  }
}

TEST_F(VideoTest, ReturnsExactlyTheSampledFramesAcrossKeyFramesAndReordering) {
  for (const char* name : kRamps) {
    SCOPED_TRACE(name);
    const std::vector<std::int64_t> wanted{0, 3, 11, 12, 13, 13, 24};
    const auto bytes = video(name);
    const std::vector<Image> frames = decode_all(in_memory(bytes), always(wanted));
    ASSERT_EQ(frames.size(), wanted.size());
    for (std::size_t i = 0; i < wanted.size(); ++i) {
      SCOPED_TRACE(wanted[i]);
      EXPECT_EQ(frames[i].width_px, 96);
      expect_grey(frames[i], static_cast<int>(10 * wanted[i]));
    }
  }
}

TEST_F(VideoTest, UsesTheColourMatrixOfTheStream) {
  const auto bytes = video("ramp_h264.mp4");  // BT.709, limited range
  const Image frame = decode_all(in_memory(bytes), always({5})).front();
  const auto [red, green, blue] = pixel(frame, 8, 8);
  EXPECT_GT(red, 245);  // BT.601 would give some 20 levels of green
  EXPECT_LT(green, 10);
  EXPECT_LT(blue, 10);
}

TEST_F(VideoTest, RefusesAColourMatrixThatNothingConverts) {
  const auto bytes = video("ycgco_h264.mp4");
  test::expect_error(ErrorCode::kUnsupported,
                     "clip: no conversion to RGB from the colour matrix ycgco",
                     [&] { (void)decode_all(in_memory(bytes), always({0})); });
}

// ramp_cut.mp4 is ramp_h264.mp4 from frame 11 on, cut without decoding: the frames before are still
// in the file, and its edit list hides them.
TEST_F(VideoTest, AnEditListHidesFramesFromTheSampler) {
  const auto bytes = video("ramp_cut.mp4");
  const std::vector<Image> frames = decode_all(in_memory(bytes), [](const VideoInfo& info) {
    EXPECT_EQ(info.num_frames, 14);
    return std::vector<std::int64_t>{0, 1, 7, 13};
  });
  ASSERT_EQ(frames.size(), 4);
  expect_grey(frames[0], 110);
  expect_grey(frames[1], 120);
  expect_grey(frames[2], 180);
  expect_grey(frames[3], 240);
}

// Of each file the PNG beside it holds the frame as ffmpeg 5.1 and PyAV 18 (bicubic) convert it.
TEST_F(VideoTest, SubsampledChromaGivesTheBytesOfFfmpegUpToTheLastColumn) {
  for (const std::string name : {"chroma_162x10.mp4", "chroma_bt709_164x10.mp4",
                                 "chroma_full_406x8.webm", "chroma_full_163x9.avi"}) {
    SCOPED_TRACE(name);
    const auto bytes = video(name);
    const Image got = decode_all(in_memory(bytes), always({0})).front();
    const Image want = decode_image(video(name.substr(0, name.find('.')) + ".png"), name, {});
    ASSERT_EQ(got.width_px, want.width_px);
    ASSERT_EQ(got.height_px, want.height_px);
    const auto [at, in_want] = std::ranges::mismatch(got.rgb, want.rgb);
    const std::int64_t byte = at - got.rgb.begin();
    EXPECT_EQ(byte, std::ssize(want.rgb))
        << "row " << byte / 3 / want.width_px << ", column " << byte / 3 % want.width_px;
  }
}

TEST_F(VideoTest, TurnsImagesUpright) {
  const auto bytes = video("ramp_rotated.mp4");
  VideoInfo seen;
  const Image frame = decode_all(in_memory(bytes), [&](const VideoInfo& info) {
                        seen = info;
                        return std::vector<std::int64_t>{5};
                      }).front();
  EXPECT_EQ(seen.width_px, 64);
  EXPECT_EQ(seen.height_px, 96);
  EXPECT_EQ(frame.width_px, 64);
  EXPECT_EQ(frame.height_px, 96);
  EXPECT_GT(pixel(frame, 8, 88)[0] - pixel(frame, 8, 88)[1], 150)
      << "a quarter turn counter-clockwise moves the square to the bottom left";
}

ErrorCode code_of(std::span<const std::uint8_t> bytes, const FrameSampler& sampler,
                  const MediaLimits& limits = {}) {
  try {
    (void)decode_all(in_memory(bytes), sampler, limits);
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("clip"), std::string::npos) << error.what();
    return error.code();
  }
  ADD_FAILURE() << "no error";
  return ErrorCode::kInternal;
}

TEST_F(VideoTest, RefusesWhatIsNoVideo) {
  const std::vector<std::uint8_t> text(100, 'x');
  EXPECT_EQ(code_of(text, always({0})), ErrorCode::kUnsupported);
  EXPECT_EQ(code_of({}, always({0})), ErrorCode::kUnsupported);
}

TEST_F(VideoTest, NamesTheFormatsThatItExpectsAndTheOneThatCame) {
  test::Bytes flash{'F', 'L', 'V', 1, 1, 0, 0, 0, 9};
  flash.resize(200);
  test::expect_error(ErrorCode::kUnsupported,
                     "clip: expected a video container of format mov,mp4,matroska,webm,avi,gif,"
                     "mpegts,ogg, got flv",
                     [&] { (void)decode_all(in_memory(flash), always({0})); });
}

TEST_F(VideoTest, RefusesPlaylistsThatWouldOpenOtherFiles) {
  const std::string playlist = "#EXTM3U\n#EXTINF:1,\nfile:///etc/hostname\n";
  EXPECT_EQ(code_of({reinterpret_cast<const std::uint8_t*>(playlist.data()), playlist.size()},
                    always({0})),
            ErrorCode::kUnsupported);
}

TEST_F(VideoTest, ReportsATruncatedFile) {
  auto bytes = video("ramp_h264.mp4");
  bytes.resize(bytes.size() * 6 / 10);
  EXPECT_EQ(
      code_of(bytes,
              [](const VideoInfo& info) { return std::vector<std::int64_t>{info.num_frames - 1}; }),
      ErrorCode::kCorruptData);
}

TEST_F(VideoTest, ChecksLimits) {
  const auto bytes = video("ramp_h264.mp4");
  EXPECT_EQ(code_of(bytes, always({0}), {.max_image_pixels = 1000}), ErrorCode::kInvalidArgument);
  EXPECT_EQ(code_of(bytes, always({0}), {.max_frame_pixels = 1000}), ErrorCode::kInvalidArgument);
  EXPECT_EQ(code_of(bytes, always({0, 1, 2}), {.max_video_frames = 2}),
            ErrorCode::kInvalidArgument);
}

TEST_F(VideoTest, SamplersMustStayInside) {
  const auto bytes = video("ramp_h264.mp4");
  EXPECT_EQ(code_of(bytes, always({25})), ErrorCode::kInternal);
  EXPECT_EQ(code_of(bytes, always({3, 2})), ErrorCode::kInternal);
  EXPECT_EQ(code_of(bytes, always({})), ErrorCode::kInternal);
}

// Frames are handed on one by one.

TEST_F(VideoTest, HandsAFrameOnBeforeTheNextIsDecoded) {
  const auto bytes = video("ramp_h264.mp4");
  int seen = 0;
  test::expect_error(ErrorCode::kUnavailable, "full", [&] {
    decode_video(in_memory(bytes), always({0, 1, 24}), {}, [&](const Image&) {
      if (++seen == 2) throw Error(ErrorCode::kUnavailable, "full");
    });
  });
  EXPECT_EQ(seen, 2);
}

TEST_F(VideoTest, ReadsAFilePieceByPiece) {
  for (const char* name : kRamps) {
    SCOPED_TRACE(name);
    const InputFile file(std::string(FOVEA_TEST_SOURCE_DIR) + "/tests/media/videos/" + name);
    const EncodedVideo from_file{
        .file = file.descriptor(), .file_bytes = file.size_bytes(), .name = name};
    const auto bytes = video(name);
    const std::vector<Image> want = decode_all(in_memory(bytes), always({0, 12, 24}));
    const std::vector<Image> got = decode_all(from_file, always({0, 12, 24}));
    ASSERT_EQ(got.size(), want.size());
    for (std::size_t i = 0; i < want.size(); ++i) EXPECT_EQ(got[i].rgb, want[i].rgb);
  }
}

TEST_F(VideoTest, AFileThatShrinksIsAnError) {
  const test::TemporaryDirectory directory;
  const std::string path = directory.path() + "/clip.mp4";
  const auto bytes = video("ramp_h264.mp4");
  std::ofstream(path, std::ios::binary)
      .write(reinterpret_cast<const char*>(bytes.data()), std::ssize(bytes));
  const InputFile file(path);
  ASSERT_EQ(truncate(path.c_str(), 1000), 0);
  test::expect_error(ErrorCode::kIo, "clip: file ends after 1000 of", [&] {
    (void)decode_all({.file = file.descriptor(), .file_bytes = file.size_bytes(), .name = "clip"},
                     always({0}));
  });
}

TEST_F(VideoTest, AFileThatCannotBeReadIsAnError) {
  const int closed_for_reading = open("/dev/null", O_WRONLY | O_CLOEXEC);
  test::expect_error(ErrorCode::kIo, "clip: cannot read: ", [&] {
    (void)decode_all({.file = closed_for_reading, .file_bytes = 100, .name = "clip"}, always({0}));
  });
  close(closed_for_reading);
}

// An interrupt ends all stages.

TEST_F(VideoTest, AStopEndsDecodingAtTheNextFrame) {
  const auto bytes = video("ramp_h264.mp4");
  std::stop_source source;
  const Interrupt interrupt(source.get_token(), Interrupt::Clock::time_point::max(), "call");
  const InterruptScope scope(&interrupt);
  int seen = 0;
  test::expect_error(ErrorCode::kCancelled, "stopped", [&] {
    decode_video(in_memory(bytes), always({0, 1, 24}), {}, [&](const Image&) {
      ++seen;
      source.request_stop();
    });
  });
  EXPECT_EQ(seen, 1);
}

TEST_F(VideoTest, AStopEndsReadingBeforeAnythingIsSampled) {
  const auto bytes = video("ramp_h264.mp4");
  const Interrupt late({}, Interrupt::Clock::now() - std::chrono::seconds(1), "call");
  const InterruptScope scope(&late);
  const FrameSampler never = [](const VideoInfo&) -> std::vector<std::int64_t> {
    ADD_FAILURE() << "read to the end";
    return {0};
  };
  test::expect_error(ErrorCode::kDeadline,
                     "call: ", [&] { (void)decode_all(in_memory(bytes), never); });
}

// The memory of frames is bounded before they are decoded.

test::Bytes grey_png(int side) {
  const std::vector<std::uint16_t> samples(static_cast<std::size_t>(side) * side, 128);
  return test::encode_png({.width = side, .height = side, .color = test::PngColor::kGrey}, samples);
}

/// The same file with another size in its header; decoders do not look at its checksum.
test::Bytes claiming(test::Bytes png, std::uint16_t width, std::uint16_t height) {
  png[18] = static_cast<std::uint8_t>(width >> 8);
  png[19] = static_cast<std::uint8_t>(width);
  png[22] = static_cast<std::uint8_t>(height >> 8);
  png[23] = static_cast<std::uint8_t>(height);
  return png;
}

TEST_F(VideoTest, FramesBeforeTimeZeroCount) {
  std::vector<test::Bytes> packets;
  for (const std::uint16_t level : std::array<std::uint16_t, 3>{50, 100, 150}) {
    packets.push_back(test::encode_png({.width = 64, .height = 64, .color = test::PngColor::kGrey},
                                       std::vector<std::uint16_t>(64 * 64, level)));
  }
  const test::Bytes bytes = test::matroska_of_png(64, 64, packets, -100);
  const std::vector<Image> frames = decode_all(in_memory(bytes), always({0, 1, 2}));
  ASSERT_EQ(frames.size(), 3);
  for (std::size_t i = 0; i < 3; ++i) EXPECT_EQ(frames[i].rgb[0], 50 * (i + 1));
}

TEST_F(VideoTest, RefusesLargerFramesThanTheStreamNamesBeforeTheyAreDecoded) {
  const std::vector<test::Bytes> packets{grey_png(64), claiming(grey_png(64), 16'000, 16'000)};
  const test::Bytes bytes = test::matroska_of_png(64, 64, packets);
  EXPECT_EQ(decode_all(in_memory(bytes), always({0})).size(), 1);
  test::expect_error(ErrorCode::kCorruptData,
                     "frame 1 cannot be decoded, or is larger than the 64x64", [&] {
                       (void)decode_all(in_memory(bytes), always({0, 1}));
                     });
}

TEST_F(VideoTest, RefusesAFrameOfAnotherSizeBeforeItIsConverted) {
  const std::vector<test::Bytes> packets{grey_png(64), grey_png(32), grey_png(64)};
  const test::Bytes bytes = test::matroska_of_png(64, 64, packets);
  EXPECT_EQ(decode_all(in_memory(bytes), always({0, 2})).size(), 2) << "it is not sampled";
  test::expect_error(ErrorCode::kCorruptData, "frame 1 is 32x32 pixels, the first one is 64x64",
                     [&] {
                       (void)decode_all(in_memory(bytes), always({0, 1}));
                     });
}

TEST_F(VideoTest, RefusesFramesWhoseDecodingWouldTakeTooMuchMemory) {
  const std::vector<test::Bytes> packets{grey_png(64)};
  const test::Bytes bytes = test::matroska_of_png(8'000, 8'000, packets);
  test::expect_error(ErrorCode::kInvalidArgument, "8000x8000 pixels takes 704000000 bytes",
                     [&] { (void)decode_all(in_memory(bytes), always({0})); });
  EXPECT_EQ(decode_all(in_memory(bytes), always({0}), {.max_item_bytes = 1 << 30}).size(), 1)
      << "the frame itself is small";
}

TEST_F(VideoTest, CountsTheFramesThatADecoderKeeps) {
  const auto bytes = video("ramp_h264.mp4");
  const MediaLimits exact{.max_item_bytes =
                              frame_bytes(96, 64)};  // five frames, B-frames need more
  test::expect_error(ErrorCode::kInvalidArgument, "max_item_bytes",
                     [&] { (void)decode_all(in_memory(bytes), always({24}), exact); });
}

TEST_F(VideoTest, ChecksTheNumberOfEncodedBytes) {
  const auto bytes = video("ramp_h264.mp4");
  EXPECT_EQ(code_of(bytes, always({0}), {.max_video_bytes = bytes.size() - 1}),
            ErrorCode::kInvalidArgument);
}

}  // namespace
}  // namespace fovea::media
