#include "serve/http/message.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "fovea/error.h"

namespace fovea::serve {
namespace {

TEST(Reply, CountsTheBytesOfAllParts) {
  Reply reply = text_reply(200, "text/plain", "hello");
  reply.body.push_back(body_part(std::vector<std::byte>(7)));
  EXPECT_EQ(reply.size(), 12U);
}

TEST(BodyPart, OwnsItsText) {
  BodyPart part = body_part(std::string("x"));
  const BodyPart copy = part;
  part = {};
  EXPECT_EQ(std::to_integer<char>(copy.bytes[0]), 'x');
}

std::string text_of(const Reply& reply) {
  std::string text;
  for (const BodyPart& part : reply.body) {
    text.append(reinterpret_cast<const char*>(part.bytes.data()), part.bytes.size());
  }
  return text;
}

RequestHead head(std::string path) {
  RequestHead head;
  head.path = std::move(path);
  head.id = "r-1";
  return head;
}

TEST(ErrorReply, HoldsWhatTheContractNames) {
  ApiError error(429, "queue_full", "come again", "items");
  error.retry_after_s = 3;
  const Reply reply = error_reply(error, head("/v1/encode"));
  EXPECT_EQ(reply.status, 429);
  EXPECT_EQ(reply.error_code, "queue_full");
  EXPECT_EQ(*find_header(reply.headers, "Retry-After"), "3");
  EXPECT_EQ(text_of(reply),
            R"({"error":{"message":"come again","type":"overloaded_error","param":"items",)"
            R"("code":"queue_full","request_id":"r-1"}})");
}

TEST(ErrorReply, SaysWhichKeyIsWanted) {
  const Reply reply = error_reply(ApiError(401, "invalid_api_key", "no key"), head("/v1/encode"));
  const std::string* const wanted = find_header(reply.headers, "WWW-Authenticate");
  ASSERT_NE(wanted, nullptr);
  EXPECT_EQ(*wanted, "Bearer");
}

TEST(ErrorReply, SpeaksKserveOnItsPaths) {
  EXPECT_EQ(
      text_of(error_reply(ApiError(404, "model_not_found", "no m"), head("/v2/models/m/infer"))),
      R"({"error":"model_not_found: no m"})");
  EXPECT_NE(text_of(error_reply(ApiError(404, "x", "y"), head("/v2/embed"))).find("\"type\""),
            std::string::npos);
}

TEST(ErrorReply, QuotesNothingThatMovesTheTextOfATerminal) {
  const std::string wild = "a\x1b[31m\u009b2J\u202e\xff";
  for (const char* path : {"/v1/encode", "/v2/models/m/infer"}) {
    const std::string text = text_of(error_reply(ApiError(400, "x", wild, wild), head(path)));
    EXPECT_NE(text.find("a?[31m?2J??"), std::string::npos) << text;
    EXPECT_EQ(text.find("\\u001b"), std::string::npos) << text;
  }
}

TEST(ErrorReply, IsBounded) {
  const std::string endless(60'000, 'a');
  const Reply reply = error_reply(ApiError(404, "x", "no " + endless, endless), head("/v1/encode"));
  EXPECT_LT(reply.size(), 2 * kMaxMessageBytes + 200);
}

TEST(IsRequestId, TakesVisibleAsciiOfOneTo128Characters) {
  EXPECT_TRUE(is_request_id("a"));
  EXPECT_TRUE(is_request_id("!~\"{}"));
  EXPECT_TRUE(is_request_id(std::string(128, 'x')));
  for (const std::string& bad :
       {std::string(), std::string(129, 'x'), std::string("a b"), std::string("a\n"),
        std::string("\x7f"), std::string("\xc3\xa9")}) {
    EXPECT_FALSE(is_request_id(bad)) << bad;
  }
}

TEST(RequestIds, AreDifferent) {
  RequestIds one;
  RequestIds other;
  std::set<std::string> seen;
  for (int i = 0; i < 100; ++i) {
    for (RequestIds* ids : {&one, &other}) {
      const std::string id = ids->next();
      EXPECT_THAT(id, testing::MatchesRegex("fov-[0-9a-f]{32}"));
      seen.insert(id);
    }
  }
  EXPECT_EQ(seen.size(), 200u);
}

}  // namespace
}  // namespace fovea::serve
