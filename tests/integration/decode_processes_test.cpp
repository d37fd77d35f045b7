// fovea with --decode-processes, from the outside.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "integration/encode_program.h"

namespace fovea::test {
namespace {

using ::testing::HasSubstr;

TEST_F(EncodeProgram, WritesTheSameFileWithDecodeProcesses) {
  const std::string videos = FOVEA_TEST_SOURCE_DIR "/tests/media/videos/";
  std::vector<std::string> inputs{photo_, gradient_, noise_, "--video", frames_};
  const bool has_videos = run_fovea({"env"}).out.find("libfovea_video.so)") != std::string::npos;
  if (has_videos) inputs.insert(inputs.end(), {"--video", videos + "ramp_h264.mp4"});
  expect_success(encode(inputs));
  const std::string here = read_text(output());
  inputs.insert(inputs.end(), {"--decode-processes", "2"});
  expect_success(encode(inputs));
  EXPECT_TRUE(read_text(output()) == here);
}

TEST_F(EncodeProgram, GivesTheSameErrorsWithDecodeProcesses) {
  write_text(folder_ / "cut.jpg", read_text(photo_).substr(0, 3000));
  const std::vector<std::string> inputs{photo_, folder_ / "cut.jpg", noise_, "--on-error", "skip"};
  const ProgramResult here = encode(inputs);
  std::vector<std::string> apart = inputs;
  apart.insert(apart.end(), {"--decode-processes", "1"});
  const ProgramResult there = encode(apart);
  EXPECT_THAT(here.err, HasSubstr("cut.jpg"));
  EXPECT_EQ(there.err, here.err);
  EXPECT_EQ(there.exit_code, here.exit_code);
}

TEST_F(EncodeProgram, GoesOnWithTheFramesThatCanBeReadAsDecodeProcessesDo) {
  if (run_fovea({"env"}).out.find("libfovea_video.so)") == std::string::npos) GTEST_SKIP();
  const std::string whole = read_text(FOVEA_TEST_SOURCE_DIR "/tests/media/videos/ramp_h264.mp4");
  const std::string clip = folder_ / "cut.mp4";
  write_text(clip, whole.substr(0, whole.size() * 8 / 10));
  std::vector<std::string> inputs{"--video", clip, "--fps", "10"};
  const ProgramResult here = encode(inputs);
  EXPECT_EQ(here.exit_code, 0);
  EXPECT_EQ(here.err, "fovea: warning: video.frames_lost item=\"" + clip +
                          "\" frames=\"6,9..24\" seconds=\"0.6,0.9..2.4\" used=8 of=25\n");
  const std::string rows = read_text(output());
  inputs.insert(inputs.end(), {"--decode-processes", "1"});
  const ProgramResult there = encode(inputs);
  EXPECT_EQ(there.exit_code, 0);
  EXPECT_EQ(there.err, here.err);
  EXPECT_TRUE(read_text(output()) == rows);
  inputs.insert(inputs.end(), {"--damaged-frames", "refuse"});
  const ProgramResult refused = encode(inputs);
  EXPECT_EQ(refused.exit_code, 1);
  EXPECT_THAT(refused.err, HasSubstr("cut.mp4: frame 6 cannot be decoded"));
}

}  // namespace
}  // namespace fovea::test
