#include "serve/http/reply_writer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "serve/http/stream_pair.h"

namespace fovea::serve {
namespace {

TEST(HttpDate, IsThatOfTheStandard) {
  EXPECT_EQ(http_date(784'111'777), "Sun, 06 Nov 1994 08:49:37 GMT");
  EXPECT_EQ(http_date(0), "Thu, 01 Jan 1970 00:00:00 GMT");
  EXPECT_EQ(http_date(1'709'164'800), "Thu, 29 Feb 2024 00:00:00 GMT");
}

TEST(ReplyHead, HoldsWhatTheTransportAdds) {
  Reply reply = text_reply(404, "text/plain", "four");
  reply.headers.push_back({"X-A", "1"});
  EXPECT_EQ(
      reply_head(reply, {.server = "fovea/1", .request_id = "id", .now = 0, .keep_alive = true}),
      "HTTP/1.1 404 Not Found\r\nServer: fovea/1\r\nDate: Thu, 01 Jan 1970 00:00:00 GMT\r\n"
      "X-Request-Id: id\r\nContent-Type: text/plain\r\nX-A: 1\r\nContent-Length: 4\r\n"
      "Connection: keep-alive\r\n\r\n");
}

TEST(ReplyHead, LeavesOutWhatThereIsNot) {
  const Reply reply{.status = 204, .content_type = {}, .headers = {}, .body = {}};
  EXPECT_EQ(reply_head(reply, {.server = {}, .request_id = {}, .now = 0, .keep_alive = false}),
            "HTTP/1.1 204 No Content\r\nDate: Thu, 01 Jan 1970 00:00:00 GMT\r\n"
            "Connection: close\r\n\r\n");
}

TEST(ReplyHead, EndsNoHeaderWithinAValue) {
  Reply reply = text_reply(200, "a\r\nSet-Cookie: x", "");
  reply.headers.push_back({"X-A", std::string("1\r\n\r\nbody\0end", 13)});
  const std::string head =
      reply_head(reply, {.server = {}, .request_id = {}, .now = 0, .keep_alive = false});
  EXPECT_THAT(head, testing::HasSubstr("Content-Type: a  Set-Cookie: x\r\n"));
  EXPECT_THAT(head, testing::HasSubstr("X-A: 1    body end\r\n"));
}

TEST(ReplyHead, KnowsTheStatusesOfTheServer) {
  for (const int status : {200, 201, 202, 304, 400, 401, 403, 405, 408, 409, 413, 415,
                           417, 422, 429, 431, 500, 501, 502, 503, 504, 505, 507}) {
    const Reply reply{.status = status, .content_type = {}, .headers = {}, .body = {}};
    const std::string line = "HTTP/1.1 " + std::to_string(status);
    const std::string head =
        reply_head(reply, {.server = {}, .request_id = {}, .now = 0, .keep_alive = false});
    EXPECT_THAT(head, testing::StartsWith(line)) << status;
    EXPECT_THAT(head, testing::Not(testing::StartsWith(line + " Unknown"))) << status;
  }
  EXPECT_THAT(reply_head({.status = 299, .content_type = {}, .headers = {}, .body = {}}, {}),
              testing::StartsWith("HTTP/1.1 299 Unknown\r\n"));
}

class WriteReply : public testing::Test {
 protected:
  WriteReply() {
    now_.head.method = "GET";
    Reply reply = text_reply(200, "text/plain", "");
    for (const char* text : {"ab", "", "cde"}) reply.body.push_back(body_part(std::string(text)));
    now_.answer(std::move(reply));
  }

  void write(ReplyPace pace = {.idle_timeout = std::chrono::hours(1), .floor = any_rate()}) {
    pair_.run(write_reply(*pair_.stream, pace, "HEAD\n", now_));
  }
  static RateFloor any_rate() { return {0, {}, std::chrono::seconds(1), Clock::now()}; }

  test::StreamPair pair_;
  Transaction now_;
};

TEST_F(WriteReply, SendsHeadAndParts) {
  write();
  EXPECT_EQ(pair_.receive(), "HEAD\nabcde");
  EXPECT_EQ(now_.outcome.bytes_out, 5U) << "of the body";
}

TEST_F(WriteReply, SendsNoBodyWhereThereIsToBeNone) {
  now_.head.method = "HEAD";
  write();
  EXPECT_EQ(pair_.receive(), "HEAD\n");
  now_.head.method = "DELETE";
  now_.answer({.status = 204, .body = {body_part(std::string("x"))}});
  write();
  EXPECT_EQ(pair_.receive(), "HEAD\n");
  EXPECT_EQ(now_.outcome.bytes_out, 0U);
}

TEST_F(WriteReply, LetsGoOfAPartOnceItHasBeenSent) {
  const auto owner = std::make_shared<int>();
  now_.reply->body[0].owner = owner;
  write();
  EXPECT_EQ(owner.use_count(), 1);
}

TEST_F(WriteReply, NoticesThatTheClientHasLeft) {
  pair_.client.reset(-1);
  EXPECT_THROW(write(), ClientLeft);
}

TEST_F(WriteReply, EndsWhereTheClientTakesNothing) {
  now_.reply->body.push_back(body_part(std::string(16 << 20, 'x')));
  const ReplyPace pace{.idle_timeout = std::chrono::milliseconds(1), .floor = any_rate()};
  try {
    write(pace);
    FAIL() << "the client takes no more";
  } catch (const ApiError& error) {
    EXPECT_EQ(error.code(), "slow_reader");
  }
  EXPECT_GT(now_.outcome.bytes_out, 0U);
}

}  // namespace
}  // namespace fovea::serve
