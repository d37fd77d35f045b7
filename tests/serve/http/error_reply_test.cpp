#include "serve/http/error_reply.h"

#include <gtest/gtest.h>

#include "fovea/error.h"

namespace fovea::serve {
namespace {

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

}  // namespace
}  // namespace fovea::serve
