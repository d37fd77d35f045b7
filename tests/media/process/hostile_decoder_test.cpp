// The host against a decoder that misbehaves: one item fails, the next one does not.
#include <gtest/gtest.h>

#include <chrono>
#include <csignal>
#include <thread>

#include "core/interrupt.h"
#include "media/process/child_process.h"
#include "media/process/decode_in_process.h"
#include "media/process/decode_processes.h"
#include "media/process/decoder_process.h"
#include "media/process/own_children.h"
#include "media/test_images.h"
#include "support/expect_error.h"

namespace fovea::media {
namespace {

using namespace std::chrono_literals;
using test::decode_in_process;
using test::expect_error;

/// A file that makes the decoder do what `order` says.
test::Bytes file(char order) {
  test::Bytes bytes = test::png_that_claims(12, 5);
  bytes.push_back(static_cast<std::uint8_t>(order));
  return bytes;
}

class HostileDecoder : public ::testing::Test {
 protected:
  /// Expects this error of one item, and pixels of the item after it.
  void expect_one_failure(char order, ErrorCode code, const std::string& part) {
    SCOPED_TRACE(order);
    expect_error(code, "photo.png: " + part,
                 [&] { (void)decode_in_process(processes_, file(order), "photo.png"); });
    expect_grey();
  }
  void expect_grey() {
    const Image grey = decode_in_process(processes_, file('.'), "photo.png");
    EXPECT_EQ(grey.rgb, test::Bytes(12 * 5 * 3, 128));
  }

  DecodeProcesses processes_{1, {}, FOVEA_TEST_HOSTILE_DECODER};
};

TEST_F(HostileDecoder, ThatEndsIsOneFailedItem) {
  expect_one_failure('a', ErrorCode::kCorruptData, "its decoder process crashed: Aborted");
  expect_one_failure('k', ErrorCode::kUnavailable, "its decoder process was ended");
  expect_one_failure('x', ErrorCode::kUnavailable, "its decoder process was ended");
  expect_one_failure('p', ErrorCode::kUnavailable, "its decoder process was ended");
  expect_one_failure('c', ErrorCode::kDeadline, "its decoder process ran out of CPU time");
}

TEST_F(HostileDecoder, ThatLiesIsOneFailedItem) {
  expect_one_failure('s', ErrorCode::kCorruptData,
                     "expected 12 x 5 pixels of its decoder process, got 13 x 5");
  expect_one_failure('g', ErrorCode::kCorruptData, "message with its decoder process: no reply");
  expect_one_failure('d', ErrorCode::kCorruptData,
                     "expected reply 2 of its decoder process, got 4");
}

TEST_F(HostileDecoder, CannotWriteToTheTerminalByItsErrors) {
  expect_one_failure('e', ErrorCode::kUnsupported, "?[2Jno?");
}

TEST_F(HostileDecoder, ThatHangsIsEndedAtTheDeadline) {
  {
    const Interrupt soon({}, Interrupt::Clock::now() + 100ms, "this item");
    const InterruptScope scope(&soon);
    expect_error(ErrorCode::kDeadline, "this item",
                 [&] { (void)decode_in_process(processes_, file('h'), "photo.png"); });
  }
  EXPECT_EQ(test::own_children().size(), 0u);
  expect_grey();
}

TEST_F(HostileDecoder, ThatHangsIsEndedByAStop) {
  std::stop_source stop;
  std::jthread later([&] {
    std::this_thread::sleep_for(50ms);
    stop.request_stop();
  });
  const Interrupt asked(stop.get_token(), Interrupt::Clock::time_point::max(), "");
  const InterruptScope scope(&asked);
  expect_error(ErrorCode::kCancelled, "stopped",
               [&] { (void)decode_in_process(processes_, file('h'), "photo.png"); });
}

TEST_F(HostileDecoder, IsKeptAfterAnErrorAndReplacedWhenOutOfMemory) {
  expect_grey();
  const std::vector<int> before = test::own_children();
  expect_one_failure('e', ErrorCode::kUnsupported, "");
  EXPECT_EQ(test::own_children(), before);
  expect_one_failure('m', ErrorCode::kOutOfMemory, "no memory");
  EXPECT_NE(test::own_children(), before);
}

TEST_F(HostileDecoder, IsReplacedAfterAThousandItems) {
  expect_grey();
  const std::vector<int> before = test::own_children();
  for (int i = 1; i < 999; ++i) expect_grey();
  EXPECT_EQ(test::own_children(), before);
  expect_grey();
  expect_grey();
  EXPECT_NE(test::own_children(), before);
}

/// Frames that arrive of a video whose last byte is `order`.
int count_frames(DecodeProcesses& processes, char order) {
  int count = 0;
  const auto bytes = static_cast<std::uint8_t>(order);
  (void)processes.decode_video(
      {.bytes = {&bytes, 1}, .name = "v.mp4"},
      [](const VideoInfo& info) {
        return info.unreadable.empty() ? std::vector<std::int64_t>{0, 1, 2}
                                       : std::vector<std::int64_t>{0, 2};
      },
      [&](const Image& frame) { count += frame.rgb.size() == 24 ? 1 : 0; });
  return count;
}

TEST_F(HostileDecoder, OfVideosIsOneFailedItem) {
  const auto expect_failure = [&](char order, ErrorCode code, const std::string& part) {
    SCOPED_TRACE(order);
    expect_error(code, "v.mp4: " + part, [&] { (void)count_frames(processes_, order); });
    EXPECT_EQ(count_frames(processes_, '.'), 3);
  };
  expect_failure('w', ErrorCode::kInvalidArgument, "expected sides of at most");
  expect_failure('n', ErrorCode::kCorruptData, "message with its decoder process");
  expect_failure('l', ErrorCode::kCorruptData, "its decoder process took a frame");
  expect_failure('s', ErrorCode::kCorruptData, "expected 4 x 2 pixels");
  expect_failure('m', ErrorCode::kCorruptData, "expected reply 4 of its decoder process, got 2");
  expect_failure('k', ErrorCode::kUnavailable, "its decoder process was ended");
}

TEST_F(HostileDecoder, MayLoseFramesThatWereAskedForOnce) {
  EXPECT_EQ(count_frames(processes_, 'u'), 2);
  const auto expect_failure = [&](char order, const std::string& part) {
    SCOPED_TRACE(order);
    expect_error(ErrorCode::kCorruptData, "v.mp4: " + part,
                 [&] { (void)count_frames(processes_, order); });
    EXPECT_EQ(count_frames(processes_, '.'), 3);
  };
  expect_failure('b', "its decoder process cannot read frames that nobody asked for");
  expect_failure('f', "its decoder process cannot read frames that nobody asked for");
  expect_failure('o', "its decoder process cannot read frames that nobody asked for");
  expect_failure('z', "its decoder process cannot read 0 of 3 frames");
  expect_failure('r', "expected reply 2 of its decoder process, got 3");
}

TEST(DecoderProcess, ThatIsNoneIsRefused) {
  expect_error(ErrorCode::kUnavailable, "cannot start program: No such file",
               [] { (void)ChildProcess("/no/such/program", {}); });
  expect_error(ErrorCode::kUnavailable, "decoder process: its decoder process was ended",
               [] { (void)DecoderProcess(ChildProcess("/bin/true", {})); });
}

TEST(DecodeProcesses, AreNoneForZeroAndRefusedBelow) {
  EXPECT_EQ(make_decode_processes(0, {}), nullptr);
  expect_error(ErrorCode::kInvalidArgument, ">= 1, got -1",
               [] { (void)make_decode_processes(-1, {}); });
}

}  // namespace
}  // namespace fovea::media
