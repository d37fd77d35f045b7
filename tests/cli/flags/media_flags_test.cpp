#include "flags/media_flags.h"

#include <gtest/gtest.h>

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

}  // namespace
}  // namespace fovea::cli
