// The decoder that is installed, against decoding in this process.
#include "media/process/decode_processes.h"

#include <gtest/gtest.h>

#include <csignal>
#include <filesystem>
#include <functional>
#include <future>
#include <optional>
#include <thread>

#include "core/file.h"
#include "core/interrupt.h"
#include "core/thread_pool.h"
#include "media/decode_image.h"
#include "media/process/decode_in_process.h"
#include "media/process/own_children.h"
#include "media/test_images.h"
#include "media/video.h"
#include "support/expect_error.h"
#include "support/golden.h"
#include "support/media_profile_cases.h"

namespace fovea::media {
namespace {

using namespace std::chrono_literals;
using test::Bytes;
using test::decode_in_process;
using test::expect_error;
using test::own_children;

constexpr std::size_t kMostFileBytes = std::size_t{64} << 20;

/// Image files below a folder.
std::vector<std::string> images_below(const std::string& folder) {
  std::vector<std::string> paths;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
    const std::string extension = entry.path().extension().string();
    if (extension == ".png" || extension == ".jpg" || extension == ".webp")
      paths.push_back(entry.path().string());
  }
  return paths;
}

/// Pixels, or the error: code and message.
struct Outcome {
  Image image;
  std::optional<ErrorCode> code;
  std::string message;
};

template <class Decode>
Outcome outcome_of(Decode&& decode) {
  try {
    return {decode(), std::nullopt, ""};
  } catch (const Error& error) {
    return {{}, error.code(), error.what()};
  }
}

void expect_same(DecodeProcesses& processes, const Bytes& bytes, const std::string& name,
                 const MediaOptions& options = {}, int reduction = 1) {
  SCOPED_TRACE(name);
  const Outcome here = outcome_of([&] { return decode_image(bytes, name, options, reduction); });
  const Outcome there =
      outcome_of([&] { return decode_in_process(processes, bytes, name, options, reduction); });
  EXPECT_EQ(there.image.width_px, here.image.width_px);
  EXPECT_EQ(there.image.height_px, here.image.height_px);
  EXPECT_EQ(there.image.margins.right_px, here.image.margins.right_px);
  EXPECT_EQ(there.image.margins.bottom_px, here.image.margins.bottom_px);
  EXPECT_TRUE(there.image.rgb == here.image.rgb) << "pixels differ";
  EXPECT_EQ(there.code, here.code);
  EXPECT_EQ(there.message, here.message);
}

Bytes photo() {
  return read_file(std::string(FOVEA_TEST_GOLDEN_DIR) + "/qwen3_vl/images/photo_180x180.jpg",
                   kMostFileBytes);
}

class DecodeProcessesTest : public ::testing::Test {
 protected:
  DecodeProcesses processes_{2, {}, FOVEA_TEST_DECODER};
};

TEST_F(DecodeProcessesTest, GiveThePixelsOfThisProcess) {
  std::vector<std::string> folders = test::golden_roots();
  folders.push_back(std::string(FOVEA_TEST_SOURCE_DIR) + "/tests/media/images");
  int num_images = 0;
  for (const std::string& folder : folders) {
    for (const std::string& path : images_below(folder)) {
      expect_same(processes_, read_file(path, kMostFileBytes), path);
      ++num_images;
    }
  }
  EXPECT_GT(num_images, 50);
}

TEST_F(DecodeProcessesTest, GiveThePixelsAndErrorsOfEveryFormat) {
  for (const std::string golden :
       {"formats.safetensors", "heic.safetensors", "heic_files.safetensors"}) {
    std::vector<test::MediaProfileCase> files = test::media_profile_cases("vllm", golden);
    for (test::MediaProfileCase& refused : test::refused_images(golden))
      files.push_back(std::move(refused));
    for (const test::MediaProfileCase& each : files) expect_same(processes_, each.file, each.name);
  }
}

TEST_F(DecodeProcessesTest, GiveTheErrorsOfThisProcess) {
  const std::string folder = std::string(FOVEA_TEST_SOURCE_DIR) + "/tests/media/images/";
  for (const char* name : {"rgb.png", "rgb_420.jpg", "lossy.webp", "animated_alpha.webp"}) {
    const Bytes whole = read_file(folder + name, kMostFileBytes);
    for (std::size_t size = 0; size < whole.size(); size += 1 + whole.size() / 20) {
      expect_same(processes_, {whole.begin(), whole.begin() + static_cast<long>(size)},
                  std::string(name) + " cut to " + std::to_string(size));
    }
  }
  expect_same(processes_, test::png_that_claims(1 << 20, 4), "too wide.png");
  expect_same(processes_, {'n', 'o', 'n', 'e'}, "no image");
}

TEST_F(DecodeProcessesTest, GiveImagesAtAFractionOfTheirSize) {
  const std::string folder = std::string(FOVEA_TEST_SOURCE_DIR) + "/tests/media/images/";
  for (const char* name : {"rgb_420.jpg", "rgb_420_progressive.jpg", "cmyk.jpg", "rgb.png"}) {
    for (const int reduction : {2, 4, 8}) {
      expect_same(processes_, read_file(folder + name, kMostFileBytes), name, {}, reduction);
    }
  }
}

TEST_F(DecodeProcessesTest, FollowTheProfileAndTheBackground) {
  MediaOptions options;
  options.background[2] = 9;
  const Bytes rgba = read_file(std::string(FOVEA_TEST_SOURCE_DIR) + "/tests/media/images/rgba.png",
                               kMostFileBytes);
  for (const MediaProfile profile : {MediaProfile::kVllm, MediaProfile::kTransformers}) {
    options.profile = profile;
    DecodeProcesses processes(1, options, FOVEA_TEST_DECODER);
    expect_same(processes, rgba, "rgba.png", options);
  }
}

TEST_F(DecodeProcessesTest, ServeManyThreadsInOrder) {
  constexpr std::int64_t kItems = 100;
  std::vector<Bytes> files;
  std::vector<Image> images(kItems);
  for (int i = 0; i < kItems; ++i) {
    const Bytes samples(static_cast<std::size_t>(3 * (i + 1) * 7), static_cast<std::uint8_t>(i));
    const std::vector<std::uint16_t> wide(samples.begin(), samples.end());
    files.push_back(test::encode_png({.width = i + 1, .height = 7}, wide));
  }
  ThreadPool pool(4);
  pool.parallel_for(kItems, [&](std::int64_t i, int) {
    const auto at = static_cast<std::size_t>(i);
    images[at] = decode_in_process(processes_, files[at], "item");
  });
  EXPECT_LE(own_children().size(), 2u);
  for (std::size_t i = 0; i < files.size(); ++i) {
    SCOPED_TRACE(i);
    EXPECT_EQ(images[i].width_px, static_cast<std::int64_t>(i) + 1);
    EXPECT_EQ(images[i].rgb, Bytes(3 * (i + 1) * 7, static_cast<std::uint8_t>(i)));
  }
}

TEST_F(DecodeProcessesTest, LoseOneItemWhenOneIsKilled) {
  (void)decode_in_process(processes_, photo(), "first.jpg");
  ASSERT_EQ(own_children().size(), 1u);
  const int worker = own_children().front();
  kill(worker, SIGSTOP);  // the next item reaches it and waits
  std::future<Image> item = std::async(
      std::launch::async, [&] { return decode_in_process(processes_, photo(), "second.jpg"); });
  EXPECT_EQ(item.wait_for(100ms), std::future_status::timeout);
  kill(worker, SIGKILL);
  expect_error(ErrorCode::kUnavailable, "second.jpg: its decoder process was ended",
               [&] { (void)item.get(); });
  expect_same(processes_, photo(), "third.jpg");
}

TEST_F(DecodeProcessesTest, LoseNothingWhenAnIdleOneIsKilled) {
  expect_same(processes_, photo(), "first.jpg");
  const int worker = own_children().front();
  kill(worker, SIGKILL);
  while (std::filesystem::exists("/proc/" + std::to_string(worker) + "/exe"))
    std::this_thread::sleep_for(1ms);
  std::this_thread::sleep_for(20ms);
  expect_same(processes_, photo(), "second.jpg");
}

TEST_F(DecodeProcessesTest, EndWhatIsOverdue) {
  (void)decode_in_process(processes_, photo(), "first.jpg");
  kill(own_children().front(), SIGSTOP);
  {
    const Interrupt soon({}, Interrupt::Clock::now() + 100ms, "second.jpg");
    const InterruptScope scope(&soon);
    expect_error(ErrorCode::kDeadline, "second.jpg",
                 [&] { (void)decode_in_process(processes_, photo(), "second.jpg"); });
  }
  EXPECT_EQ(own_children().size(), 0u);
  expect_same(processes_, photo(), "third.jpg");
}

TEST_F(DecodeProcessesTest, EndAWaitInLineAtTheDeadline) {
  DecodeProcesses one(1, {}, FOVEA_TEST_DECODER);
  (void)decode_in_process(one, photo(), "first.jpg");
  const int worker = own_children().front();
  kill(worker, SIGSTOP);
  std::future<Image> item =
      std::async(std::launch::async, [&] { return decode_in_process(one, photo(), "second.jpg"); });
  EXPECT_EQ(item.wait_for(50ms), std::future_status::timeout);
  {
    const Interrupt soon({}, Interrupt::Clock::now() + 50ms, "third.jpg");
    const InterruptScope scope(&soon);
    expect_error(ErrorCode::kDeadline, "third.jpg",
                 [&] { (void)decode_in_process(one, photo(), "third.jpg"); });
  }
  kill(worker, SIGCONT);
  EXPECT_EQ(item.get().width_px, 180);
}

/// Sampled frames of a video, one after the other.
/// @param skips whether frames that cannot be read are left out, or insisted on.
Outcome frames_of(const std::function<VideoInfo(const FrameSampler&, const FrameSink&)>& decode,
                  bool skips) {
  return outcome_of([&] {
    Image frames;
    VideoInfo seen;
    const VideoInfo info = decode(
        [&](const VideoInfo& before) {
          seen = before;
          frames = {};
          const std::int64_t last = before.num_frames - 1;
          std::vector<std::int64_t> chosen{0, last / 3, last / 2, last / 2, last};
          if (skips) {
            std::erase_if(chosen, [&](std::int64_t index) {
              return std::ranges::binary_search(before.unreadable, index);
            });
          }
          return chosen;
        },
        [&](const Image& frame) {
          frames.width_px = frame.width_px;
          frames.height_px += frame.height_px;
          frames.rgb.insert(frames.rgb.end(), frame.rgb.begin(), frame.rgb.end());
        });
    EXPECT_EQ(info.decode_bytes, seen.decode_bytes);
    EXPECT_EQ(info.fps, seen.fps);
    EXPECT_EQ(info.unreadable, seen.unreadable);
    EXPECT_EQ(info.num_cut, seen.num_cut);
    return frames;
  });
}

class DecodeVideosTest : public DecodeProcessesTest {
 protected:
  void SetUp() override {
    if (video_status().starts_with("not used")) GTEST_SKIP() << video_status();
  }
  void expect_same_video(const EncodedVideo& video, bool skips = false) {
    VideoInfo info_here;
    VideoInfo info_there;
    const Outcome here = frames_of(
        [&](const FrameSampler& sampler, const FrameSink& sink) {
          return info_here = decode_video(video, sampler, {}, sink);
        },
        skips);
    const Outcome there = frames_of(
        [&](const FrameSampler& sampler, const FrameSink& sink) {
          return info_there = processes_.decode_video(video, sampler, sink);
        },
        skips);
    EXPECT_EQ(info_there.unreadable, info_here.unreadable);
    EXPECT_EQ(info_there.num_cut, info_here.num_cut);
    EXPECT_EQ(there.image.width_px, here.image.width_px);
    EXPECT_EQ(there.image.height_px, here.image.height_px);
    EXPECT_TRUE(there.image.rgb == here.image.rgb) << "pixels differ";
    EXPECT_EQ(there.code, here.code);
    EXPECT_EQ(there.message, here.message);
  }
};

constexpr const char* kVideos = FOVEA_TEST_SOURCE_DIR "/tests/media/videos";

TEST_F(DecodeVideosTest, GiveTheFramesOfThisProcess) {
  for (const auto& entry : std::filesystem::directory_iterator(kVideos)) {
    const std::string path = entry.path().string();
    SCOPED_TRACE(path);
    const InputFile file(path);
    expect_same_video({.file = file.descriptor(), .file_bytes = file.size_bytes(), .name = path});
    const Bytes bytes = read_file(path, kMostFileBytes);
    expect_same_video({.bytes = bytes, .name = "from memory"});
  }
}

TEST_F(DecodeVideosTest, GiveTheErrorsOfThisProcess) {
  const Bytes whole = read_file(std::string(kVideos) + "/ramp_h264.mp4", kMostFileBytes);
  for (const std::size_t size : {std::size_t{0}, whole.size() / 2, whole.size() - 40}) {
    SCOPED_TRACE(size);
    expect_same_video({.bytes = std::span(whole).first(size), .name = "cut.mp4"});
  }
}

TEST_F(DecodeVideosTest, GiveWhatCanBeReadOfADamagedVideo) {
  for (const char* name : {"ramp_h264.mp4", "ramp_vp9.webm", "ramp_h264.ts"}) {
    SCOPED_TRACE(name);
    const Bytes whole = read_file(std::string(kVideos) + "/" + name, kMostFileBytes);
    const std::span cut = std::span(whole).first(whole.size() * 8 / 10);
    expect_same_video({.bytes = cut, .name = name}, true);
  }
}

TEST_F(DecodeVideosTest, EndWithTheExceptionOfTheSink) {
  const Bytes bytes = read_file(std::string(kVideos) + "/ramp_h264.mp4", kMostFileBytes);
  const auto sampler = [](const VideoInfo&) { return std::vector<std::int64_t>{0, 1, 2}; };
  expect_error(ErrorCode::kUnavailable, "enough", [&] {
    (void)processes_.decode_video({.bytes = bytes, .name = "v.mp4"}, sampler, [](const Image&) {
      throw Error(ErrorCode::kUnavailable, "enough");
    });
  });
  expect_same_video({.bytes = bytes, .name = "v.mp4"});
}

TEST(DecodeProcesses, FailTheItemThatNeedsMoreMemoryThanItMayHave) {
  MediaOptions options;
  options.limits.max_item_bytes = std::size_t{16} << 20;
  options.limits.max_image_bytes = std::size_t{1} << 20;
  DecodeProcesses processes(1, options, FOVEA_TEST_DECODER);
  if (processes.isolation() == Isolation::kNone) GTEST_SKIP() << "no limits in this build";
  const std::vector<std::uint16_t> grey(5000 * 5000, 128);
  const Bytes large =
      test::encode_png({.width = 5000, .height = 5000, .color = test::PngColor::kGrey}, grey);
  const Outcome failed =
      outcome_of([&] { return decode_in_process(processes, large, "large.png", options); });
  EXPECT_TRUE(failed.code == ErrorCode::kOutOfMemory || failed.code == ErrorCode::kInvalidArgument)
      << failed.message;
  EXPECT_EQ(decode_in_process(processes, photo(), "photo.jpg").width_px, 180);
}

TEST(DecodeProcesses, LeaveNeitherProcessesNorDescriptors) {
  const std::size_t before = test::open_descriptors();
  {
    DecodeProcesses processes(3, {}, FOVEA_TEST_DECODER);
    ThreadPool pool(3);
    pool.parallel_for(
        30, [&](std::int64_t, int) { (void)decode_in_process(processes, photo(), "photo.jpg"); });
    EXPECT_GE(own_children().size(), 1u);
  }
  EXPECT_EQ(own_children().size(), 0u);
  EXPECT_EQ(test::open_descriptors(), before);
}

TEST(DecodeProcesses, OutliveTheThreadThatAskedFirst) {
  DecodeProcesses processes(1, {}, FOVEA_TEST_DECODER);
  std::thread([&] { (void)decode_in_process(processes, photo(), "photo.jpg"); }).join();
  std::this_thread::sleep_for(50ms);
  const std::vector<int> before = own_children();
  (void)decode_in_process(processes, photo(), "photo.jpg");
  EXPECT_EQ(own_children(), before);
}

}  // namespace
}  // namespace fovea::media
