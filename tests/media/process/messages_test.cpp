#include "media/process/messages.h"

#include <gtest/gtest.h>

#include <functional>
#include <limits>
#include <vector>

#include "support/expect_error.h"
#include "support/options.h"

namespace fovea::media {
namespace {

using test::expect_error;

Reply pixels(std::int64_t width_px, std::int64_t height_px, std::uint64_t payload_bytes) {
  return {.kind = ReplyKind::kPixels,
          .width_px = width_px,
          .height_px = height_px,
          .payload_bytes = payload_bytes};
}

Reply video(std::int64_t num_frames, double fps) {
  return {.kind = ReplyKind::kVideoInfo,
          .width_px = 96,
          .height_px = 64,
          .num_frames = num_frames,
          .fps = fps};
}

TEST(Request, SurvivesTheSocket) {
  const Request received = parse_request(to_header(
      {.kind = RequestKind::kVideo, .reduction = 4, .payload_bytes = 1234, .file_bytes = 5678}));
  EXPECT_EQ(received.kind, RequestKind::kVideo);
  EXPECT_EQ(received.reduction, 4);
  EXPECT_EQ(received.payload_bytes, 1234u);
  EXPECT_EQ(received.file_bytes, 5678u);
}

TEST(Request, HoldsEveryOptionOfMedia) {
  test::for_each_change(
      MediaOptions{}, [](const std::string& name, const OptionFacts&, const MediaOptions& changed) {
        const Request received = parse_request(to_header({.options = changed}));
        EXPECT_EQ(test::all_texts(received.options), test::all_texts(changed)) << name;
      });
}

TEST(Request, OfValuesThatDoNotExistIsRefused) {
  RequestHeader header = to_header(Request{});
  header[8 * 4] = 3;
  expect_error(ErrorCode::kCorruptData, "no image_backend has the number 3",
               [&] { (void)parse_request(header); });
}

TEST(Words, OfOptionsNeedNothingButATable) {
  constexpr std::size_t kWords = option_words<test::OwnOptions>();
  static_assert(kWords == 1 + 1 + 2 + 1 + 3 + 1);
  test::for_each_change(test::OwnOptions{}, [](const std::string& name, const OptionFacts&,
                                               const test::OwnOptions& sent) {
    std::array<std::uint8_t, 8 * kWords> header{};
    WordWriter writer(header);
    put_options(writer, sent);
    test::OwnOptions received;
    WordReader reader(header, "here");
    take_options(reader, received);
    EXPECT_EQ(test::all_texts(received), test::all_texts(sent)) << name;
  });
}

TEST(Words, ThatAreNoValueOfAnOptionAreRefused) {
  const auto take_with = [](std::size_t word, std::uint8_t low) {
    std::array<std::uint8_t, 8 * option_words<test::OwnOptions>()> header{};
    header[8 * word] = low;
    header[8 * word + 1] = 1;  // 256 and more
    return [header] {
      test::OwnOptions options;
      WordReader reader(header, "here");
      take_options(reader, options);
    };
  };
  expect_error(ErrorCode::kCorruptData,
               "here: message with its decoder process: no mode has the number 256",
               take_with(0, 0));
  expect_error(ErrorCode::kCorruptData, "no strict has the number 257", take_with(1, 1));
  expect_error(ErrorCode::kCorruptData, "no side has the number 258", take_with(2, 2));
  expect_error(ErrorCode::kCorruptData, "no tint has the number 259", take_with(6, 3));
}

TEST(Request, OfAnUnknownKindIsRefused) {
  RequestHeader header = to_header(Request{});
  header[0] = 4;
  expect_error(ErrorCode::kCorruptData, "no request has the number 4",
               [&] { (void)parse_request(header); });
}

TEST(Reply, SurvivesTheSocket) {
  const Reply received = parse_reply(to_header(video(25, 29.97)), "v.mp4");
  EXPECT_EQ(received.kind, ReplyKind::kVideoInfo);
  EXPECT_EQ(received.width_px, 96);
  EXPECT_EQ(received.height_px, 64);
  EXPECT_EQ(received.num_frames, 25);
  EXPECT_EQ(received.fps, 29.97);
  const Reply error = parse_reply(
      to_header(Reply{.kind = ReplyKind::kError, .code = ErrorCode::kDeadline, .payload_bytes = 9}),
      "v.mp4");
  EXPECT_EQ(error.code, ErrorCode::kDeadline);
  EXPECT_EQ(error.payload_bytes, 9u);
}

TEST(Reply, AboutAVideoSaysWhatCannotBeReadOfIt) {
  Reply sent = video(25, 29.97);
  sent.num_cut = 7;
  sent.payload_bytes = 25 * 8;
  const Reply received = parse_reply(to_header(sent), "v.mp4");
  EXPECT_EQ(received.num_cut, 7);
  EXPECT_EQ(received.payload_bytes, 200u);
}

Reply lossy_video(std::int64_t num_cut, std::uint64_t payload_bytes) {
  Reply reply = video(5, 10);
  reply.num_cut = num_cut;
  reply.payload_bytes = payload_bytes;
  return reply;
}

TEST(ReplyTable, RefusesWhatMakesNoSense) {
  constexpr std::int64_t kLargest = std::numeric_limits<std::int64_t>::max();
  constexpr double kInfinite = std::numeric_limits<double>::infinity();
  const std::vector<Reply> nonsense{pixels(4, 4, 47),
                                    pixels(4, 4, 49),
                                    pixels(0, 4, 0),
                                    pixels(-4, -4, 48),
                                    pixels(kLargest, 2, 0),
                                    pixels(1LL << 31, 1LL << 31, 0),
                                    video(0, 10),
                                    video(-1, 10),
                                    video(5, -1),
                                    video(5, kInfinite),
                                    video(5, std::numeric_limits<double>::quiet_NaN()),
                                    lossy_video(-1, 0),
                                    lossy_video(kMostVideoFrames + 1, 0),
                                    lossy_video(0, 7),
                                    lossy_video(0, 6 * 8),
                                    {.kind = ReplyKind::kDone, .payload_bytes = 1},
                                    {.kind = ReplyKind::kError, .payload_bytes = kMaxTextBytes + 1},
                                    {.kind = ReplyKind::kReady, .payload_bytes = 1}};
  for (std::size_t i = 0; i < nonsense.size(); ++i) {
    SCOPED_TRACE(i);
    expect_error(ErrorCode::kCorruptData, "makes no sense",
                 [&] { (void)parse_reply(to_header(nonsense[i]), "v.mp4"); });
  }
}

TEST(ReplyTable, RefusesEnumeratorsThatDoNotExist) {
  const auto with_word = [](Reply reply, std::size_t word, std::uint8_t value) {
    ReplyHeader header = to_header(reply);
    header[8 * word] = value;
    return [header] { (void)parse_reply(header, "v.mp4"); };
  };
  expect_error(ErrorCode::kCorruptData, "v.mp4: message with its decoder process: no reply has",
               with_word({}, 0, 0));
  expect_error(ErrorCode::kCorruptData, "v.mp4: message with its decoder process: no reply has",
               with_word({}, 0, 6));
  expect_error(ErrorCode::kCorruptData, "no error", with_word({}, 1, 99));
  expect_error(ErrorCode::kCorruptData, "no isolation",
               with_word({.kind = ReplyKind::kReady}, 1, 3));
}

TEST(Indices, SurviveTheSocket) {
  const std::vector<std::int64_t> indices{0, 3, 3, 1'000'000};
  EXPECT_EQ(parse_indices(to_payload(indices)), indices);
}

TEST(Printable, ReplacesEverythingThatATerminalWouldObey) {
  const std::vector<std::uint8_t> text{'a', 0x1b, '[', '\n', 0x9b, 0xe2, 0x7f, 0, '~', ' '};
  EXPECT_EQ(printable(text), "a?[?????~ ");
}

}  // namespace
}  // namespace fovea::media
