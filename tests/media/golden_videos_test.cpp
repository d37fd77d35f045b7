// Every frame of every golden video has the bytes that PyAV and the ffmpeg program read.
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <numeric>
#include <span>
#include <string>
#include <vector>

#include "core/file.h"
#include "core/sha256.h"
#include "media/video.h"
#include "support/golden_videos.h"

namespace fovea::media {
namespace {

TEST(GoldenVideos, HaveTheFramesThatTheReferenceReads) {
  if (video_status().starts_with("not used")) GTEST_SKIP() << video_status();
  const std::vector<test::GoldenVideo> videos = test::golden_videos();
  EXPECT_GE(videos.size(), 12);
  for (const test::GoldenVideo& golden : videos) {
    SCOPED_TRACE(golden.name);
    const InputFile file(golden.path);
    VideoInfo seen;
    const auto all = [&](const VideoInfo& info) {
      seen = info;
      std::vector<std::int64_t> indices(static_cast<std::size_t>(info.num_frames));
      std::iota(indices.begin(), indices.end(), std::int64_t{0});
      return indices;
    };
    std::vector<std::string> hashes;
    decode_video({.file = file.descriptor(), .file_bytes = file.size_bytes(), .name = golden.name},
                 all, {}, [&](const Image& frame) {
                   EXPECT_EQ(frame.width_px, golden.width_px);
                   EXPECT_EQ(frame.height_px, golden.height_px);
                   Sha256 hash;
                   hash.add(std::as_bytes(std::span(frame.rgb)));
                   hashes.push_back(hash.hex());
                 });
    EXPECT_DOUBLE_EQ(seen.fps, golden.fps);
    EXPECT_EQ(seen.num_cut, 0) << "the file is whole";
    EXPECT_EQ(hashes, golden.frame_hashes);
  }
}

}  // namespace
}  // namespace fovea::media
