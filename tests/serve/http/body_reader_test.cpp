#include "serve/http/body_reader.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "serve/http/stream_pair.h"
#include "support/expect_error.h"

namespace fovea::serve {
namespace {

using std::chrono::milliseconds;

class BodyReaderTest : public testing::Test {
 protected:
  BodyReaderTest() {
    now_.body = std::make_shared<HeldBody>();
    now_.received = Received::kHead;
    now_.head.deadline = Clock::now() + std::chrono::hours(1);
    now_.permit.grow = [this](std::uint64_t bytes) { rooms_.push_back(bytes); };
  }

  void read() {
    BodyReader reader(*pair_.stream, options_, now_);
    pair_.run(reader.read());
  }
  /// "status code" of the error.
  std::string refusal() {
    try {
      read();
      return "none";
    } catch (const ApiError& error) {
      return std::to_string(error.status()) + " " + error.code();
    } catch (const ClientLeft&) {
      return "left";
    }
  }
  [[nodiscard]] std::string body() const {
    return {now_.body->bytes.begin(), now_.body->bytes.end()};
  }
  /// Bytes that came with the head.
  void read_ahead(std::string_view bytes) {
    pair_.send(bytes);
    EXPECT_EQ(pair_.run(pair_.stream->fill(bytes.size())).bytes, bytes.size());
  }

  test::StreamPair pair_;
  HttpOptions options_;
  Transaction now_;
  std::vector<std::uint64_t> rooms_;
};

TEST_F(BodyReaderTest, ReadsAsManyBytesAsWereAnnounced) {
  now_.framing.content_length = 6;
  read_ahead("ab");
  pair_.send("cdefgh");
  read();
  EXPECT_EQ(body(), "abcdef");
  EXPECT_EQ(now_.received, Received::kAll);
  EXPECT_EQ(now_.outcome.bytes_in, 6U);
  EXPECT_EQ(rooms_, std::vector<std::uint64_t>{6}) << "no more than the body may be";
  EXPECT_EQ(pair_.run(pair_.stream->fill(8)).bytes, 2U) << "the next request stays";
}

TEST_F(BodyReaderTest, LeavesTheNextRequestThatCameWithTheHead) {
  now_.framing.content_length = 2;
  read_ahead("abGET");
  read();
  EXPECT_EQ(body(), "ab");
  EXPECT_EQ(pair_.stream->input().view(), "GET");
}

TEST_F(BodyReaderTest, ReadsChunks) {
  now_.framing.is_chunked = true;
  read_ahead("3\r\nab");
  pair_.send("c\r\n2;x=y\r\nde\r\n0\r\nTrailer: 1\r\n\r\nGET");
  read();
  EXPECT_EQ(body(), "abcde");
  EXPECT_EQ(now_.received, Received::kAll);
  EXPECT_EQ(pair_.stream->input().view(), "GET");
}

TEST_F(BodyReaderTest, AsksForRoomInStepsThatDouble) {
  constexpr std::size_t kStep = std::size_t{64} << 10;
  now_.framing.content_length = 5 * kStep;
  const std::string piece(kStep, 'x');
  const auto send = [&]() -> Awaitable<void> {
    Event later(pair_.context.get_executor());
    for (int i = 0; i < 5; ++i) {
      std::string_view rest = piece;
      while (!rest.empty()) {
        const ssize_t sent = ::send(pair_.client.get(), rest.data(), rest.size(), MSG_NOSIGNAL);
        if (sent > 0) rest.remove_prefix(static_cast<std::size_t>(sent));
        if (sent <= 0) co_await later.wait_until(Clock::now() + milliseconds(1));
      }
    }
  };
  pair_.begin(send());
  read();
  EXPECT_EQ(now_.body->bytes.size(), 5 * kStep);
  EXPECT_EQ(rooms_, (std::vector<std::uint64_t>{kStep, 2 * kStep, 4 * kStep, 5 * kStep}));
}

TEST_F(BodyReaderTest, EndsWhereThereIsNoRoom) {
  now_.permit.grow = [](std::uint64_t) { throw ApiError(429, "queue_full", "no room"); };
  now_.framing.content_length = 3;
  pair_.send("abc");
  EXPECT_EQ(refusal(), "429 queue_full");
  EXPECT_EQ(now_.received, Received::kHead);
}

TEST_F(BodyReaderTest, RefusesChunksBeyondTheLimit) {
  options_.max_body_bytes = 4;
  now_.framing.is_chunked = true;
  pair_.send("5\r\nabcde\r\n0\r\n\r\n");
  EXPECT_EQ(refusal(), "413 body_too_large");
}

TEST_F(BodyReaderTest, SaysContinueToAClientThatWaits) {
  now_.framing = {.content_length = 2, .expects_continue = true};
  const auto answer = [&]() -> Awaitable<void> {
    Event later(pair_.context.get_executor());
    std::string seen;
    while (seen.empty()) {
      co_await later.wait_until(Clock::now() + milliseconds(1));
      seen = pair_.receive();
    }
    EXPECT_EQ(seen, "HTTP/1.1 100 Continue\r\n\r\n");
    pair_.send("ab");
  };
  pair_.begin(answer());
  read();
  EXPECT_EQ(body(), "ab");
}

TEST_F(BodyReaderTest, SaysNothingToAClientThatHasNotWaited) {
  now_.framing = {.content_length = 2, .expects_continue = true};
  read_ahead("ab");
  read();
  EXPECT_EQ(pair_.receive(), "");
}

TEST_F(BodyReaderTest, NoticesThatTheClientHasLeft) {
  now_.framing.content_length = 3;
  pair_.send("ab");
  pair_.shut_sending();
  EXPECT_EQ(refusal(), "left");
  EXPECT_EQ(now_.outcome.bytes_in, 2U);
}

TEST_F(BodyReaderTest, EndsAtTheDeadlineOfTheRequest) {
  now_.framing.content_length = 3;
  now_.head.deadline = Clock::now();
  EXPECT_EQ(refusal(), "504 deadline_exceeded");
}

TEST_F(BodyReaderTest, EndsWhereNothingComes) {
  now_.framing.content_length = 3;
  options_.body_idle_timeout = milliseconds(1);
  EXPECT_EQ(refusal(), "408 slow_request");
}

TEST_F(BodyReaderTest, EndsWhereTooLittleComes) {
  now_.framing.content_length = 3;
  options_.rate_grace = milliseconds(0);
  options_.rate_window = milliseconds(10);
  options_.min_body_rate = 1 << 20;
  pair_.send("a");
  EXPECT_EQ(refusal(), "408 slow_request");
}

}  // namespace
}  // namespace fovea::serve
