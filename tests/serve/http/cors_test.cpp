#include "serve/http/cors.h"

#include <gtest/gtest.h>

#include "support/expect_error.h"

namespace fovea::serve {
namespace {

RequestHead head_of(const std::string& method, const Headers& headers) {
  RequestHead head;
  head.method = method;
  head.path = "/v1/encode";
  head.headers = headers;
  return head;
}

RequestHead asking(const std::string& origin, const std::string& method = "POST",
                   const std::string& headers = "Authorization, Content-Type") {
  return head_of("OPTIONS", {{"Origin", origin},
                             {"Access-Control-Request-Method", method},
                             {"Access-Control-Request-Headers", headers}});
}

std::string value_of(const Reply& reply, const char* name) {
  const std::string* const value = find_header(reply.headers, name);
  return value == nullptr ? "none" : *value;
}

std::string text_of(const Reply& reply) {
  return {reinterpret_cast<const char*>(reply.body.at(0).bytes.data()), reply.size()};
}

/// The header that lets a page read a reply.
std::string allowed_origin(const Cors& cors, const std::string& origin) {
  Reply reply;
  cors.add_headers(head_of("GET", {{"Origin", origin}}), reply);
  return value_of(reply, "Access-Control-Allow-Origin");
}

TEST(Cors, IsSilentUnlessAskedFor) {
  const Cors cors;
  EXPECT_FALSE(cors.preflight(asking("https://a.test")));
  Reply reply;
  cors.add_headers(head_of("GET", {{"Origin", "https://a.test"}}), reply);
  EXPECT_TRUE(reply.headers.empty());
}

TEST(Cors, LetsPagesOfItsOriginsReadReplies) {
  const Cors cors({.origins = {"https://a.test", "http://b.test:3000"}});
  EXPECT_EQ(allowed_origin(cors, "https://a.test"), "https://a.test");
  EXPECT_EQ(allowed_origin(cors, "http://b.test:3000"), "http://b.test:3000");
  for (const char* other : {"http://a.test", "https://a.test:8443", "https://b.a.test", "null",
                            "https://a.test.c.test", "https://a.test/"})
    EXPECT_EQ(allowed_origin(cors, other), "none") << other;
  EXPECT_EQ(allowed_origin(Cors({.origins = {"*"}}), "https://any.test"), "*");
  EXPECT_EQ(allowed_origin(Cors({.origins = {"*"}, .allow_credentials = true}), "https://any.test"),
            "https://any.test");
}

TEST(Cors, TellsCachesThatRepliesDiffer) {
  const Cors cors({.origins = {"https://a.test"}});
  Reply reply;
  cors.add_headers(head_of("GET", {}), reply);
  EXPECT_EQ(value_of(reply, "Vary"), "Origin");
  EXPECT_EQ(value_of(reply, "Access-Control-Allow-Origin"), "none");
}

/// As a reply of a language model may have it, which a proxy passes on.
TEST(Cors, TellsCachesSoBesideWhatElseRepliesVaryBy) {
  const Cors cors({.origins = {"https://a.test"}});
  Reply reply;
  reply.headers = {{"Vary", "Accept-Encoding"}};
  cors.add_headers(head_of("GET", {}), reply);
  ASSERT_EQ(reply.headers.size(), 2U);
  EXPECT_EQ(reply.headers[1].name, "Vary");
  EXPECT_EQ(reply.headers[1].value, "Origin");
}

TEST(Cors, SaysSoOnce) {
  const Cors cors({.origins = {"https://a.test"}});
  for (const char* known : {"Origin", "Accept-Encoding, origin", "*"}) {
    Reply reply;
    reply.headers = {{"vary", known}};
    cors.add_headers(head_of("GET", {}), reply);
    EXPECT_EQ(reply.headers.size(), 1U) << known;
  }
}

TEST(Cors, AnswersBrowsersThatAskFirst) {
  const Cors cors({.origins = {"https://a.test"}, .allow_credentials = true});
  const auto reply = cors.preflight(asking("https://a.test"));
  ASSERT_TRUE(reply);
  EXPECT_EQ(reply->status, 200);
  EXPECT_EQ(value_of(*reply, "Access-Control-Allow-Origin"), "https://a.test");
  EXPECT_EQ(value_of(*reply, "Access-Control-Allow-Methods"),
            "DELETE, GET, HEAD, OPTIONS, PATCH, POST, PUT");
  EXPECT_EQ(value_of(*reply, "Access-Control-Allow-Headers"), "Authorization, Content-Type");
  EXPECT_EQ(value_of(*reply, "Access-Control-Allow-Credentials"), "true");
  EXPECT_EQ(value_of(*reply, "Access-Control-Max-Age"), "600");
}

TEST(Cors, SaysWhatItDoesNotAllow) {
  const Cors cors({.origins = {"https://a.test"}, .methods = {"GET"}, .headers = {"X-Key"}});
  const auto answer = [&](const RequestHead& head) {
    const auto reply = cors.preflight(head);
    return reply ? std::to_string(reply->status) + " " + text_of(*reply) : "none";
  };
  EXPECT_EQ(answer(asking("https://b.test", "GET", "x-key, Accept")), "400 Disallowed CORS origin");
  EXPECT_EQ(answer(asking("https://a.test", "POST", "x-key")), "400 Disallowed CORS method");
  EXPECT_EQ(answer(asking("https://a.test", "GET", "X-Other")), "400 Disallowed CORS headers");
  EXPECT_EQ(answer(asking("https://b.test", "PUT", "X-Other")),
            "400 Disallowed CORS origin, method, headers");
  EXPECT_EQ(answer(asking("https://a.test", "GET", "X-Key")), "200 OK");
}

TEST(Cors, LeavesOtherRequestsAlone) {
  const Cors cors({.origins = {"*"}});
  EXPECT_FALSE(cors.preflight(head_of("OPTIONS", {{"Origin", "https://a.test"}})));
  EXPECT_FALSE(cors.preflight(head_of("OPTIONS", {{"Access-Control-Request-Method", "GET"}})));
  EXPECT_FALSE(cors.preflight(
      head_of("POST", {{"Origin", "https://a.test"}, {"Access-Control-Request-Method", "GET"}})));
}

TEST(Cors, RefusesWhatNoBrowserSends) {
  for (const char* wrong : {"a.test", "https://a.test/", "https://A.test", "ftp://a.test", ""})
    test::expect_error(ErrorCode::kInvalidArgument, "--allowed-origins: expected * or origins",
                       [&] { (void)Cors({.origins = {wrong}}); });
}

}  // namespace
}  // namespace fovea::serve
