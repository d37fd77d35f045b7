#include "flags/media_flags.h"

#include <gtest/gtest.h>

#include <chrono>

#include "cli/expect_usage_error.h"

namespace fovea::cli {
namespace {

MediaOptions parsed(const std::string& command_line) {
  CLI::App verb;
  MediaFlags flags;
  add_media_flags(verb, flags);
  verb.parse(command_line);
  return media_options(flags);
}

TEST(MediaFlags, NameEveryProfile) {
  EXPECT_EQ(parsed("").profile, MediaOptions{}.profile);
  EXPECT_EQ(parsed("--media-profile vllm").profile, MediaProfile::kVllm);
  EXPECT_EQ(parsed("--media-profile vllm-0.23").profile, MediaProfile::kVllm023);
  EXPECT_EQ(parsed("--media-profile transformers").profile, MediaProfile::kTransformers);
  EXPECT_EQ(parsed("--media-profile sglang").profile, MediaProfile::kSglang);
  EXPECT_THROW((void)parsed("--media-profile torch"), CLI::ParseError);
}

TEST(MediaFlags, ScaleJpegFilesOnRequestAlone) {
  EXPECT_FALSE(parsed("").jpeg_scaling);
  EXPECT_TRUE(parsed("--jpeg-scaling").jpeg_scaling);
}

TEST(MediaFlags, RefuseDamagedVideosOnRequestAlone) {
  EXPECT_EQ(parsed("").damaged_frames, DamagedFrames::kSkip);
  EXPECT_EQ(parsed("--damaged-frames skip").damaged_frames, DamagedFrames::kSkip);
  EXPECT_EQ(parsed("--damaged-frames refuse").damaged_frames, DamagedFrames::kRefuse);
  EXPECT_THROW((void)parsed("--damaged-frames guess"), CLI::ParseError);
}

TEST(MediaFlags, TakeABackground) {
  const MediaOptions white = parsed("--media-profile vllm-0.23");
  EXPECT_EQ(white.background[0], 255);
  const MediaOptions options = parsed("--rgba-background-color 0,128,255");
  EXPECT_EQ(options.background[0], 0);
  EXPECT_EQ(options.background[1], 128);
  EXPECT_EQ(options.background[2], 255);
}

TEST(MediaFlags, RefuseWhatIsNoColour) {
  for (const char* text : {"white", "1,2", "1,2,3,4"}) {
    test::expect_usage_error(std::string("--rgba-background-color: expected R,G,B, got \"") + text,
                             [&] { (void)parsed(std::string("--rgba-background-color ") + text); });
  }
  test::expect_usage_error("--rgba-background-color: expected a whole number from 0 to 255, got",
                           [] { (void)parsed("--rgba-background-color 0,0,256"); });
}

TEST(MediaFlags, RefuseABackgroundThatTheProfileDoesNotUse) {
  test::expect_usage_error(
      "--rgba-background-color: --media-profile sglang ignores transparency",
      [] { (void)parsed("--media-profile sglang --rgba-background-color 0,0,0"); });
}

TEST(MediaFlags, LimitsAreThoseOfTheLibraryUnlessGiven) {
  const MediaLimits limits = parsed("").limits;
  EXPECT_EQ(limits.max_item_bytes, MediaLimits{}.max_item_bytes);
  EXPECT_EQ(limits.max_patches_per_item, MediaLimits{}.max_patches_per_item);
  EXPECT_EQ(limits.max_decode_bytes, MediaLimits{}.max_decode_bytes);
  EXPECT_EQ(limits.decode_deadline, MediaLimits{}.decode_deadline);
}

TEST(MediaFlags, TakeLimitsOnCost) {
  const MediaLimits limits =
      parsed(
          "--max-item-bytes 1000 --max-patches-per-item 20 --max-decode-bytes 3000 "
          "--decode-deadline 40")
          .limits;
  EXPECT_EQ(limits.max_item_bytes, 1000u);
  EXPECT_EQ(limits.max_patches_per_item, 20);
  EXPECT_EQ(limits.max_decode_bytes, 3000u);
  EXPECT_EQ(limits.decode_deadline, std::chrono::milliseconds(40));
}

TEST(MediaFlags, AllThreadsNeedTheMemoryOfOneItem) {
  EXPECT_EQ(parsed("--max-item-bytes 1000 --max-decode-bytes 1000").limits.max_decode_bytes, 1000u);
  test::expect_usage_error("--max-decode-bytes: expected at least --max-item-bytes, 1000, got 999",
                           [] { (void)parsed("--max-item-bytes 1000 --max-decode-bytes 999"); });
}

TEST(MediaFlags, ADeadlineIsAtMostADay) {
  EXPECT_EQ(parsed("--decode-deadline 86400000").limits.decode_deadline, std::chrono::hours(24));
  for (const char* const text : {"0", "86400001", "1.5"})
    test::expect_usage_error("--decode-deadline: expected a whole number from 1 to 86400000, got",
                             [&] { (void)parsed(std::string("--decode-deadline ") + text); });
}

}  // namespace
}  // namespace fovea::cli
